#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "data/convert/converter.hpp"
#include "data/convert/verifier.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

void print_outcome(const ConvertedCollection& done) {
  if (!done.published) {
    print("{:<20} not published: {} bad\n", done.collection.name,
          format_count(static_cast<std::int64_t>(done.bad.size())));
    return;
  }
  print(
      "{:<20} {:>7} graphs ({} converted, {} kept, {} bad)   configurations: float32 {}, in "
      "memory {}, on disk {}\n",
      done.collection.name, format_count(done.graphs), format_count(done.converted),
      format_count(done.kept), format_count(static_cast<std::int64_t>(done.bad.size())),
      format_bytes(done.float_bytes), format_bytes(done.memory_bytes),
      format_bytes(done.stored_bytes));
}

void run(const ConvertOptions& options) {
  Display display;
  std::size_t bad = 0;
  std::string unpublished;
  for (const ConvertedCollection& done : convert(options, display.progress())) {
    print_outcome(done);
    bad += done.bad.size();
    if (!done.published) unpublished += (unpublished.empty() ? "" : ", ") + done.collection.name;
  }
  if (bad == 0) return print_next("tpudist inspect " + shell_word(options.shard_root.string()));
  const std::string rest =
      unpublished.empty()
          ? "the rest was converted"
          : fmt::format("not published: {} (mend the files, or {})", unpublished,
                        options.skip_bad ? "let the graphs go that they had before (--replace)"
                                         : "leave them out (--on-error skip)");
  throw DataError(
      fmt::format("{} bad NPZ file{}, named above; {}", bad, bad == 1 ? "" : "s", rest));
}

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

void add_convert_command(Command app) {
  struct Arguments {
    ConvertOptions options;
    std::vector<std::string> collections;
    std::string on_error = "fail";
  };
  auto arguments = std::make_shared<Arguments>();
  const Command command = app.add_command("convert", "Convert NPZ files to HDF5 shards");
  command.footer(
      "Checks every value, encodes configurations without loss, and proves it by decoding. A run "
      "that was cut\n"
      "short goes on where it stopped; finished shards of unchanged files are kept.\n"
      "Exit code 3 when a file is bad; all of them are named.\n\n"
      "Example:\n  tpudist convert npz tpudist-data --collections layout:xla:random,tile:xla "
      "--jobs 8");
  command.add_option("npz_root", arguments->options.npz_root, "Folder with layout/ and tile/")
      .required()
      .existing_folder();
  command
      .add_option("shards", arguments->options.shard_root, "Folder of the shards, made if need be")
      .required();
  command
      .add_option("--collections", arguments->collections,
                  "E.g. layout:xla:random,tile:xla (default: all that are there)")
      .split_at(',');
  command
      .add_option("--jobs", arguments->options.jobs, "Files at a time (default: one for each core)")
      .in_range(1, 1024);
  command
      .add_option("--on-error", arguments->on_error,
                  "Bad files: 'fail' publishes nothing of their collection, 'skip' leaves them out")
      .one_of({"fail", "skip"})
      .show_default();
  command.add_flag("--replace", arguments->options.replace,
                   "Let graphs go whose files are gone, or skipped as bad");
  command.run([arguments] {
    for (const std::string& name : arguments->collections) {
      arguments->options.collections.push_back(Collection::parse(name));
    }
    arguments->options.skip_bad = arguments->on_error == "skip";
    run(arguments->options);
  });
}

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
