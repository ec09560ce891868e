#pragma once

#include <string>
#include <vector>

#include "results/records/sweep_record.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// The training and validation graphs in an experiment's shards now, by their manifests. Throws
// ConfigError, which says where to convert to, when there are none, and DataError as list_graphs.
// `begun`: a run has begun with these shards, so others are no choice.
FrozenData read_data(const Experiment& experiment, bool begun = false);

// The entry for an experiment's shards and collection; null if `data` has none.
const FrozenData* find_data(const std::vector<FrozenData>& data, const Experiment& experiment);
// Adds that entry if it is missing and the shards can be read.
const FrozenData* add_data(std::vector<FrozenData>& data, const Experiment& experiment);

// The graphs of a split in `data` that the experiment selects.
std::vector<GraphEntry> chosen_graphs(const FrozenData& data, const Experiment& experiment,
                                      const std::string& split);

// Sets SweepRun::inputs, unless folds or first weights cannot be read yet. `known`: hashes of folds
// and weights read before, by settings or path, shared by the runs of a sweep.
void set_data_hashes(SweepRun& run, const FrozenData& data, const Experiment& experiment,
                     Inputs& known);

// The data on which a training is scored. Only trainings with equal ScoredOn are compared.
struct ScoredOn {
  std::string collection;
  std::int64_t rows = 0;  // most rows per graph; 0: all, -1: none
  std::string graphs;     // hash of names, data and folds; without data, of the selection
  bool operator==(const ScoredOn&) const = default;
};
ScoredOn scored_on(const Experiment& experiment, bool out_of_fold, const FrozenData* data,
                   Inputs& known);
// For example "data.collection is a and b"; the two must differ.
std::string difference_of(const ScoredOn& a, const ScoredOn& b);

// Reads the shards, folds and first weights of a run and sets the hashes of `now`. If a hash
// differs from the run's, throws DataError, which names the graphs that were added, removed or
// changed, or the other change. `then`: the data in sweep.json. Also throws as read_data.
void require_same_data(const SweepRun& run, SweepRun& now, const Experiment& experiment,
                       const FrozenData* then, bool begun);

}  // namespace tpudist
