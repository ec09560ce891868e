#include <fmt/format.h>

#include <memory>
#include <string>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "data/convert/verifier.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

void run(const VerifyOptions& options) {
  Display display;
  std::size_t problems = 0;
  for (const VerifiedCollection& done : verify(options, display.progress())) {
    print("{:<20} {:>7} graphs, {:>12} configurations sound, {} problems\n", done.collection.name,
          format_count(done.graphs), format_count(done.configs), done.problems.size());
    problems += done.problems.size();
  }
  if (problems == 0) return;
  throw DataError(
      fmt::format("{} problem{}, named above; 'tpudist convert' makes damaged shards again",
                  problems, problems == 1 ? "" : "s"));
}

}  // namespace

void add_verify_command(Command app) {
  struct Arguments {
    VerifyOptions options;
    std::string npz_root;
  };
  auto arguments = std::make_shared<Arguments>();
  const Command command =
      app.add_command("verify", "Check shards, and compare them with their sources");
  command.footer(
      "Checks manifests, hashes, every chunk, every code and the groups of equal configurations; "
      "with --npz\n"
      "also that every value is bit by bit that of the NPZ file. Exit code 3 when something is "
      "wrong.\n\n"
      "Example:\n  tpudist verify tpudist-data --npz npz");
  command.add_option("shards", arguments->options.shard_root, "Folder of the shards")
      .required()
      .existing_folder();
  command.add_option("--npz", arguments->npz_root, "Folder of the sources, with layout/ and tile/")
      .existing_folder();
  command
      .add_option("--jobs", arguments->options.jobs,
                  "Shards at a time (default: one for each core)")
      .in_range(1, 1024);
  command.run([arguments] {
    if (!arguments->npz_root.empty()) arguments->options.npz_root = arguments->npz_root;
    run(arguments->options);
  });
}

}  // namespace tpudist
