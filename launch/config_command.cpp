#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/hash.hpp"
#include "launch/commands.hpp"
#include "launch/output.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

void add_config_command(CLI::App& app) {
  struct Arguments {
    std::filesystem::path file;
    std::vector<std::string> overrides;
    bool yaml = false;
  };
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("config", "Check and show experiment files");
  command->require_subcommand(1);
  CLI::App* show =
      command->add_subcommand("show", "Print an experiment file with every value resolved");
  show->footer(
      "A `*` marks what is not the default. All mistakes are printed at once, with their place.\n\n"
      "Example:\n  tpudist config show experiments/nlp.yaml batch.configs=32");
  show->add_option("config", arguments->file, "Experiment file (YAML)")
      ->required()
      ->check(CLI::ExistingFile);
  show->add_option("overrides", arguments->overrides, "key=value pairs");
  show->add_flag("--yaml", arguments->yaml, "As YAML, which loads again");
  show->callback([arguments] {
    ConfigDocument document = ConfigDocument::load(arguments->file, arguments->overrides);
    const Experiment experiment = read_experiment(document);
    print("{}", arguments->yaml ? experiment.resolved_yaml : experiment.resolved_table);
    if (!arguments->yaml) print("hash: {}\n", to_hex(document.hash()));
  });
}

}  // namespace tpudist
