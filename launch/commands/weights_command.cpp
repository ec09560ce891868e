#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "launch/commands/commands.hpp"
#include "launch/commands/scoring_options.hpp"
#include "launch/program/job.hpp"
#include "launch/program/output.hpp"
#include "train/experiment/experiment.hpp"
#include "train/weights/exported_weights.hpp"
#include "train/weights/imported_run.hpp"

namespace tpudist {
namespace {

struct ExportArguments : ScoringArguments {
  std::filesystem::path run, file;
  std::optional<int> member;
};

struct ImportArguments {
  std::filesystem::path config, run_dir;
  std::vector<std::string> inputs;  // files, and key=value pairs
};

void require_one_rank(const JobContext& context) {
  if (context.world.size() == 1) return;
  throw ConfigError("`tpudist weights` runs on one rank; start it without mpirun");
}

void run_export(const ExportArguments& arguments) {
  JobOptions options;
  options.device = "cpu";
  options.agreed = {{"the command", "weights export"}};
  run_job(options, [&](JobContext& context) {
    require_one_rank(context);
    const TrainedRun run = arguments.open(arguments.run);
    const auto members = exported_members(run, arguments.file, arguments.member);
    std::vector<std::filesystem::path> outputs;
    for (const ExportedMember& member : members) outputs.push_back(member.path);
    check_outputs(outputs, context.world);
    export_weights(run, members);
    print("{}, {}\n", arguments.run.string(), opened_at(run));
    for (const ExportedMember& member : members)
      print("member {}: {}\n", member.number, member.path.string());
    print("parameters: {}\n", to_hex(run.parameter_hash));
  });
}

// A word that names an existing file is an input; any other key=value is an override.
bool is_override(const std::string& input) {
  std::error_code error;
  return input.find('=') != std::string::npos && !std::filesystem::exists(input, error);
}

void run_import(const ImportArguments& arguments) {
  std::vector<std::string> overrides;
  std::vector<std::filesystem::path> files;
  std::ranges::partition_copy(arguments.inputs, std::back_inserter(overrides),
                              std::back_inserter(files), is_override);
  refuse_keys_given_twice(overrides);
  if (files.empty()) throw ConfigError("give the safetensors file of each member");
  const Experiment experiment = load_experiment(arguments.config, overrides);
  JobOptions options;
  options.device = "cpu";
  options.agreed = {{"the command", "weights import"}};
  run_job(options, [&](JobContext& context) {
    require_one_rank(context);
    const ImportedRun imported = import_run(experiment, files, arguments.run_dir, context);
    for (const std::string& name : imported.absent_statistics)
      spdlog::warn("no file holds the statistics {}: they are as a new network has them", name);
    if (!imported.can_resume)
      spdlog::warn(
          "{} holds no shards of {}: the run can be scored, but not trained further; import again "
          "with data.shards=FOLDER for that",
          experiment.data.shards.string(), experiment.data.collection.name);
    print("run: {}\nmembers: {}\nparameters: {}\n", arguments.run_dir.string(), files.size(),
          to_hex(imported.parameter_hash));
  });
}

void add_export(Command weights) {
  auto arguments = std::make_shared<ExportArguments>();
  const Command command =
      weights.add_command("export", "Write the weights of a run's members as safetensors");
  command.footer(
      "Names and layouts are those of PyTorch and PyTorch Geometric. A run of several members gets "
      "a file for each,\nNAME-member-0.safetensors and so on, unless --member chooses one.\n\n"
      "Example:\n  tpudist weights export runs/nlp-1 nlp.safetensors --checkpoint best");
  command.add_option("run", arguments->run, "Folder of the run").required().existing_folder();
  command.add_option("file", arguments->file, "Safetensors file to write").required();
  command.add_option("--member", arguments->member, "Number of the member (default: all)");
  add_checkpoint_options(command, *arguments);
  command.run([arguments] { run_export(*arguments); });
}

void add_import(Command weights) {
  auto arguments = std::make_shared<ImportArguments>();
  const Command command = weights.add_command("import", "Make a run of weights trained elsewhere");
  command.footer(
      "The experiment file says what the network is; one file for each of its members, in their "
      "order. The run can be\nscored like any other, and `train --resume` goes on from it.\n\n"
      "Example:\n  tpudist weights import experiments/nlp.yaml a.safetensors b.safetensors "
      "ensemble.members=2 --run-dir runs/ported");
  command.add_option("config", arguments->config, "Experiment file (YAML)")
      .required()
      .existing_experiment();
  command
      .add_option("files", arguments->inputs,
                  "Safetensors files, and key=value pairs, e.g. ensemble.members=1")
      .required();
  command.add_option("--run-dir", arguments->run_dir, "Folder of the new run").required();
  command.run([arguments] { run_import(*arguments); });
}

}  // namespace

void add_weights_command(Command app) {
  const Command weights =
      app.add_command("weights", "Exchange weights with PyTorch as safetensors files");
  weights.require_command();
  add_export(weights);
  add_import(weights);
}

}  // namespace tpudist
