#include "launch/ensemble_predictions.hpp"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/file_system.hpp"
#include "core/log.hpp"
#include "ensemble/joined_predictions.hpp"
#include "launch/output.hpp"
#include "train/state/run_folder.hpp"

namespace tpudist {
namespace {

std::shared_ptr<const PredictionsFile> open_predictions(const std::filesystem::path& input) {
  if (!std::filesystem::is_directory(input)) return std::make_shared<PredictionsFile>(input);
  const RunFolder run = RunFolder::open(input);
  if (!std::filesystem::exists(run.predictions())) {
    throw ConfigError(
        fmt::format("{}: the run has no {}; write it with `tpudist train {} --run-dir {} --resume "
                    "predictions.rows=all`",
                    input.string(), run.predictions().filename().string(), run.config().string(),
                    input.string()));
  }
  return std::make_shared<PredictionsFile>(run.predictions());
}

using FilesByCollection =
    std::map<std::string, std::vector<std::shared_ptr<const PredictionsFile>>>;

FilesByCollection open_all(const std::vector<std::filesystem::path>& inputs, int least) {
  FilesByCollection files;
  for (const auto& input : inputs) {
    try {
      auto file = open_predictions(input);
      files[file->header().collection].push_back(std::move(file));
    } catch (const Error& error) {
      if (least == 0) throw;
      spdlog::warn("left out: {}", error.what());
    }
  }
  if (files.empty()) throw ConfigError("none of the predictions can be used");
  return files;
}

void require_columns(const Judgement& judgement, int least) {
  for (const TableJudgement& table : judgement.tables) {
    if (static_cast<int>(table.columns.size()) >= least) continue;
    throw ConfigError(fmt::format("{}: {} members are left, but --min-members asks for {}",
                                  judgement.collection, table.columns.size(), least));
  }
}

}  // namespace

void ensemble_predictions(const std::vector<std::filesystem::path>& inputs,
                          const JudgementOptions& options, int least,
                          const std::filesystem::path& json) {
  nlohmann::json list = nlohmann::json::array();
  for (auto& [collection, files] : open_all(inputs, least)) {
    const JoinedPredictions joined(files);
    JudgementOptions own = options;
    own.least_columns = least;
    const Judgement judgement = judge(joined, own);
    require_columns(judgement, least);
    print("{}\n", judgement_text(judgement));
    list.push_back(judgement_json(judgement));
  }
  if (!json.empty()) write_file_atomically(json, list.dump(2) + "\n");
}

}  // namespace tpudist
