#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "core/thread_pool.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/experiment_file.hpp"
#include "launch/program/output.hpp"
#include "launch/sweep/sweep_file.hpp"
#include "launch/sweep/sweep_plan.hpp"
#include "launch/sweep/sweep_tables.hpp"
#include "models/network/network.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {
namespace {

void print_system(const std::string& file, ThreadPool& pool) {
  ConfigDocument document = ConfigDocument::load(file);
  const Experiment experiment = read_experiment(document);
  const Experiment::System& system = experiment.system;
  if (system.source.empty()) {
    throw ConfigError(file +
                      ": has no `system:`, which says source, collections and score of a published "
                      "system: add it, or move the file elsewhere");
  }
  const Network network(experiment.network, experiment.data.collection.schema, -1, pool);
  print(
      "{}\n  file         {}\n  parameters   {}\n  collections  {}\n  score        {}\n  source    "
      "   {}\n",
      experiment.name, file, format_count(network.parameters().parameters()),
      join(system.collections, ", "), system.score, system.source);
}

void list_systems(const std::filesystem::path& folder) {
  const std::vector<std::string> files = yaml_files(find_experiment_folder(folder));
  if (files.empty()) {
    throw ConfigError(folder.string() +
                      ": holds no experiment file (*.yaml): give the folder of the systems");
  }
  ThreadPool pool(1);
  for (const std::string& file : files) print_system(file, pool);
}

struct ShowArguments {
  std::filesystem::path file;
  std::vector<std::string> overrides;
  bool yaml = false;
};

void show_experiment(const ShowArguments& arguments) {
  ConfigDocument document = ConfigDocument::load(arguments.file, arguments.overrides);
  const Experiment experiment = read_experiment(document);
  print("{}", arguments.yaml ? experiment.resolved_yaml : format_entries(experiment.entries));
  if (!arguments.yaml) print("hash: {}\n", to_hex(document.hash()));
}

void show_sweep(const ShowArguments& arguments) {
  const SweepFile file = SweepFile::load(arguments.file, arguments.overrides);
  if (arguments.yaml) return print_text(file.resolved_yaml);
  const SweepPlan plan = plan_sweep(file);
  print("sweep {} over\n", file.name);
  for (const std::filesystem::path& experiment : file.experiments)
    print("  {}\n", experiment.string());
  print(
      "\n{}\n`tpudist sweep run {}` trains these runs, `tpudist config show` shows an experiment\n",
      plan_table(plan.record), shell_word(arguments.file.string()));
}

}  // namespace

void add_config_command(Command app) {
  auto arguments = std::make_shared<ShowArguments>();
  const Command command = app.add_command("config", "Check and show experiment files");
  command.require_command();
  const Command show =
      command.add_command("show", "Print an experiment file with every value resolved");
  show.footer(
      "A `*` marks what is not the default. All mistakes are printed at once, with their place. Of "
      "a sweep file it\nprints the runs, and what they vary.\n\n"
      "Example:\n  tpudist config show experiments/nlp.yaml batch.configs=32");
  show.add_option("config", arguments->file, "Experiment or sweep file (YAML)")
      .required()
      .existing_experiment();
  show.add_option("overrides", arguments->overrides, "key=value pairs");
  show.add_flag("--yaml", arguments->yaml, "As YAML, which loads again");
  show.run([arguments] {
    const bool is_sweep = is_sweep_file(arguments->file, arguments->overrides);
    is_sweep ? show_sweep(*arguments) : show_experiment(*arguments);
  });

  auto of = std::make_shared<std::string>("experiment");
  const Command schema =
      command.add_command("schema", "Print the JSON Schema of experiment or sweep files");
  schema.footer(
      "Editors with a YAML language server complete and check files that name it in their first "
      "line:\n  # yaml-language-server: $schema=schema/experiment.json\n\n"
      "Example:\n  tpudist config schema sweep > experiments/schema/sweep.json");
  schema.add_option("of", *of, "Kind of file").one_of({"experiment", "sweep"}).show_default();
  schema.run([of] { print("{}", *of == "sweep" ? sweep_schema() : experiment_schema()); });

  auto folder = std::make_shared<std::filesystem::path>("experiments/systems");
  const Command systems = command.add_command(
      "systems", "List published systems: source, parameters, collections, known score");
  systems.footer("Example:\n  tpudist config systems");
  systems.add_option("folder", *folder, "Folder of their experiment files").show_default();
  systems.run([folder] { list_systems(*folder); });
}

}  // namespace tpudist
