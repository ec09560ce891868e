#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/json.hpp"
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

// The true times of the configurations that `tpudist search --json` found in a file of synth.
void print_times(const std::filesystem::path& found) {
  std::filesystem::path npz;
  std::vector<std::vector<LayoutState>> configs;
  std::vector<std::string> ranks;
  try {
    const std::string text = read_text_file(found);
    nlohmann::json json;
    if (json_depth(text) <= kDeepestJson) json = nlohmann::json::parse(text);
    npz = json.at("file").get<std::string>();
    for (const auto& entry : json.at("ranking")) {
      ranks.push_back(entry.value("default", false) ? "default" : entry.at("rank").dump());
      configs.emplace_back();
      // In the order of node_config_ids.
      std::map<std::size_t, LayoutState> states;
      for (const auto& [name, layouts] : entry.at("layouts").items()) {
        const auto place = number_of<std::size_t>(std::string_view(name).substr(
            std::min(name.size(), name.find('[') + 1), name.find(']') - name.find('[') - 1));
        const auto tensors = layouts.get<std::vector<std::vector<std::int64_t>>>();
        if (!place || tensors.size() > kTensors)
          throw DataError(found.string() + ": is not of an NPZ file of `tpudist synth`");
        states[*place] = state_of(tensors);
      }
      for (const auto& [place, state] : states) configs.back().push_back(state);
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{}: is no output of `tpudist search --json`: {}", found.string(),
                                json_fault(error.what())));
  }
  const std::vector<double> times = true_times(npz, configs);
  const auto standard = std::ranges::find(ranks, "default") - ranks.begin();
  if (standard == std::ssize(ranks))
    throw DataError(found.string() + ": has no default configuration");
  print("{:>8} {:>14} {:>14}\n", "rank", "time", "than default");
  for (std::size_t k = 0; k < times.size(); ++k)
    print("{:>8} {:>11.3f} us {:>12.2f} %\n", ranks[k], times[k] / 1000,
          100 * (times[k] / times[static_cast<std::size_t>(standard)] - 1));
}

}  // namespace

void add_synth_command(Command app) {
  struct Arguments {
    SynthOptions options;
    std::string root;
    std::filesystem::path times;
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
  command.add_option("out", arguments->root, "Root of the NPZ files, made if need be");
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
  command
      .add_option(
          "--times", arguments->times,
          "Instead of making files: the times, without noise, of the configurations in the "
          "output of `tpudist search --json` on one of the files, from the folder where the "
          "search ran")
      .existing_file();
  command.run([arguments] {
    if (!arguments->times.empty()) return print_times(arguments->times);
    if (arguments->root.empty()) refuse_value("out", "out is required, or --times");
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
