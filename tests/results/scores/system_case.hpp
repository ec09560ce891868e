#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/random.hpp"
#include "results/records/sweep_files.hpp"
#include "tests/results/scores/run_case.hpp"

namespace tpudist::test {

// Runs of two members on six validation graphs of four families, with two training graphs in two
// folds. The larger `noise`, the worse the members rank.
inline PredictionsCase system_run(int seed, double noise, std::uint64_t variant = 3) {
  PredictionsCase run;
  PredictedRun& header = run.header.runs[0];
  header.init_seed = header.order_seed = seed;
  header.variant_hash = variant;
  header.parameter_hash = mix_key({static_cast<std::uint64_t>(seed), variant});
  run.header.members.pop_back();  // the one that failed
  run.header.graphs.clear();
  run.graphs.clear();
  CounterRng random(header.parameter_hash);
  const auto add = [&](const std::string& name, const std::string& split, int fold) {
    PredictionEntry graph = PredictionsCase::graph(name, split, fold);
    graph.configs = graph.rows = 30;
    graph.held_out.pop_back();
    PredictionRows predictions;
    for (int row = 0; row < 30; ++row) {
      predictions.configs.push_back(row);
      predictions.runtime.push_back(1000 + 10 * row);
    }
    for (int member = 0; member < 2; ++member) {
      auto& scores = predictions.scores.emplace_back();
      for (int row = 0; row < 30; ++row) {
        const double score = row + noise * random.normal();
        scores.push_back(fold >= 0 && member != fold ? kNoScore : score);
      }
    }
    run.header.graphs.push_back(graph);
    run.graphs.push_back(std::move(predictions));
  };
  add("albert_en_base_batch_size_64_train", "train", 0);
  add("electra_small_batch_size_16_test", "train", 1);
  add("bert_pretraining.4x4.fp16", "valid", -1);
  add("bert_squad.2x2.fp32", "valid", -1);
  add("inception_v3_batch_128_train", "valid", -1);
  add("resnet50.4x4.fp16", "valid", -1);
  add("resnet_v2_152_batch_128", "valid", -1);
  add("wideresnet.4x4.bf16", "valid", -1);
  return run;
}

// Writes the folder of a system_run.
inline std::filesystem::path write_system_run(const std::filesystem::path& folder, int seed,
                                              double noise, std::uint64_t variant = 3) {
  const PredictionsCase run = system_run(seed, noise, variant);
  write_text(folder / "config.yaml", config_text(seed, 0, 2));
  write_text(folder / "metrics.jsonl", kMetrics);
  run.write(folder / "predictions.h5");
  return folder;
}

// Writes the folder of one of the two members, as with `placement: split`.
inline std::filesystem::path write_split_run(const std::filesystem::path& folder, int seed,
                                             double noise, int member, bool predictions = true) {
  PredictionsCase run = system_run(seed, noise);
  const auto keep = static_cast<std::size_t>(member);
  run.header.runs[0].parameter_hash += keep;
  run.header.members = {run.header.members[keep]};
  for (std::size_t g = 0; g < run.graphs.size(); ++g) {
    run.header.graphs[g].held_out = {run.header.graphs[g].held_out[keep]};
    run.graphs[g].scores = {run.graphs[g].scores[keep]};
  }
  write_text(folder / "config.yaml", config_text(seed, member, 1));
  write_text(folder / "metrics.jsonl", kMetrics);
  if (predictions) run.write(folder / "predictions.h5");
  return folder;
}

// A finished sweep of two variants and two seeds.
inline std::filesystem::path write_system_sweep(const std::filesystem::path& folder) {
  SweepRecord record;
  record.name = "rates";
  record.experiments = {"xla"};
  record.variant_experiment = {0, 0};
  record.variant_group = {0, 0};
  record.labels = {"rate=0.1", "a:b"};
  for (int index = 0; index < 4; ++index)
    record.runs.push_back({.index = index,
                           .id = "000000000000000" + std::to_string(index),
                           .variant = index / 2,
                           .experiment = 0,
                           .collection = "layout:xla:random",
                           .seed = static_cast<std::uint64_t>(index % 2 + 1),
                           .first_member = 0,
                           .members = 2,
                           .folds = 2,
                           .config = ""});
  record.stages = {{"search", 0, 4, 1, false}};
  std::filesystem::create_directories(folder / "results");
  std::filesystem::create_directories(folder / "claims");
  const SweepFiles files(folder);
  write_record(files.record_file(), record);
  for (const SweepRun& run : record.runs) {
    write_system_run(files.run_folder(run), run.index % 2 + 1, run.variant == 0 ? 4 : 12,
                     3 + static_cast<std::uint64_t>(run.variant));
    write_result(files.result_file(run), {.id = run.id, .finished = true});
  }
  return folder;
}

}  // namespace tpudist::test
