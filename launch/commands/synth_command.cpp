#include <fmt/format.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "data/synth/presets.hpp"
#include "data/synth/synth.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

struct Total {
  std::int64_t graphs = 0, nodes = 0, configs = 0;
  std::uintmax_t bytes = 0;
  double ceiling = 0;         // sum over the graphs with a ceiling
  std::int64_t ceilings = 0;  // graphs with a ceiling
};

// One line for each folder of a split. The noise ceiling is the mean over its graphs.
void print_totals(const std::vector<SynthFile>& files) {
  std::map<std::string, Total> totals;
  for (const SynthFile& file : files) {
    Total& total = totals[file.path.parent_path().string()];
    ++total.graphs;
    total.nodes += file.nodes;
    total.configs += file.configs;
    total.bytes += file.bytes;
    if (std::isnan(file.ceiling)) continue;
    total.ceiling += file.ceiling;
    ++total.ceilings;
  }
  for (const auto& [folder, total] : totals) {
    const std::string ceiling =
        total.ceilings ? fmt::format("{:.4f}", total.ceiling / static_cast<double>(total.ceilings))
                       : "-";
    print("{:<28} {:>6} graphs {:>12} nodes {:>12} configurations {:>12}  noise ceiling {}\n",
          folder, format_count(total.graphs), format_count(total.nodes),
          format_count(total.configs), format_bytes(total.bytes), ceiling);
  }
}

}  // namespace

void add_synth_command(Command app) {
  struct Arguments {
    SynthOptions options;
    std::string root;
    std::vector<std::string> collections;
  };
  auto arguments = std::make_shared<Arguments>();
  SynthOptions& options = arguments->options;
  options.threads = usable_cores();
  const Command command = app.add_command("synth", "Make a synthetic data set as NPZ files");
  command.footer(
      "Graphs of model families with repeated blocks; run times from a hidden cost model of "
      "layouts and tiles\n"
      "that cannot be ranked well without looking at neighbours, with noise and repeats.\n"
      "Presets: tiny and demo (all collections), nlp, xla and tile (real sizes), huge (one graph "
      "of the real maxima).\n\n"
      "Example:\n  tpudist synth npz --preset demo && tpudist convert npz tpudist-data");
  command.add_option("out", arguments->root, "Root of the NPZ files, made if need be").required();
  command.add_option("--preset", options.preset, "tiny, demo, nlp, xla, tile or huge")
      .one_of(synth::preset_names())
      .show_default();
  command.add_option("--seed", options.seed, "Equal seeds give equal files").show_default();
  command
      .add_option("--collections", arguments->collections,
                  "E.g. layout:xla:random,tile:xla (default: all of the preset)")
      .split_at(',');
  command
      .add_option("--graphs", options.graphs,
                  "Graphs per split: one number, or train,valid,test (default: the preset's)")
      .split_at(',')
      .not_negative();
  command
      .add_option("--configs", options.configs, "Configurations per graph (default: the preset's)")
      .positive();
  command.add_option("--truth", options.truth,
                     "Folder for the run times of the test split, which its files hide");
  command.add_option("--jobs", options.threads, "Graphs made at the same time")
      .in_range(1, 1024)
      .show_default();
  command.run([arguments] {
    SynthOptions& resolved = arguments->options;
    for (const std::string& name : arguments->collections) {
      resolved.collections.push_back(Collection::parse(name));
    }
    if (resolved.graphs.size() == 1) resolved.graphs.resize(3, resolved.graphs[0]);
    Display display;
    print_totals(synthesise(resolved, arguments->root, display.progress()));
    print_next(fmt::format("tpudist convert {} SHARDS", shell_word(arguments->root)));
  });
}

}  // namespace tpudist
