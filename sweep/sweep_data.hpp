#pragma once

#include <string>
#include <vector>

#include "sweep/records/sweep_record.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The training and validation graphs that the shards of an experiment hold now, by their manifests.
// Throws DataError as list_graphs.
FrozenData read_data(const Experiment& experiment);

// Of an experiment's shards and collection; null where they are not among `data`.
const FrozenData* find_data(const std::vector<FrozenData>& data, const Experiment& experiment);
// Adds them where they are not, and can be read.
void add_data(std::vector<FrozenData>& data, const Experiment& experiment);

// Of these, the graphs of a split that the experiment takes.
std::vector<GraphEntry> chosen_graphs(const FrozenData& data, const Experiment& experiment,
                                      const std::string& split);

// Fills in SweepRun::train_data and valid_data.
void set_data_hashes(SweepRun& run, const FrozenData& data, const Experiment& experiment);

// What the scores of a training stand for. Only trainings that are equal here are compared.
struct ScoredOn {
  std::string collection;
  std::int64_t rows = 0;  // of a graph at most; 0: all, -1: none
  std::string
      graphs;  // hash of their names and data, or what the experiment says where data are unknown
  bool operator==(const ScoredOn&) const = default;
};
ScoredOn scored_on(const Experiment& experiment, bool out_of_fold, const FrozenData* data);
// "data.collection is a and b", of two that differ.
std::string difference_of(const ScoredOn& a, const ScoredOn& b);

// Reads the shards of a run and fills in `now`'s hashes. Throws DataError that says which graphs were
// added, removed or changed where they are not those of the run; `then`: what sweep.json knows of them.
void require_same_data(const SweepRun& run, SweepRun& now, const Experiment& experiment,
                       const FrozenData* then);

}  // namespace tpudist
