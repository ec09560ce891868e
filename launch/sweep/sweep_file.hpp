#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/config/config.hpp"
#include "results/records/sweep_record.hpp"
#include "train/experiment/experiment.hpp"

namespace tpudist {

// A key of an experiment and the values that a sweep gives it.
struct SweptKey {
  std::string key;                  // dotted, e.g. "optimizer.lr"
  std::vector<std::string> values;  // YAML texts
};

// Reads `over:` of a sweep file, a map from dotted keys to lists of any values. Records mistakes in
// the document.
std::vector<SweptKey> read_swept_keys(ConfigNode over);

// The value for variant number `variant` when whole variants are drawn: an item of the list with
// equal probability.
std::string drawn_value(const SweptKey& key, std::uint64_t seed, std::uint64_t variant);

// Mistakes that values of a sweep cause in the experiments that get the values: the dotted key of
// the experiment; the variants and the mistake.
using SetMistakes = std::vector<std::pair<std::string, std::string>>;

// A sweep file, read and checked but not yet combined with its experiments. Plain data.
struct SweepFile {
  std::string name;
  std::vector<std::filesystem::path> experiments;  // absolute
  std::vector<std::string> overrides;              // `set:`, as key=YAML
  std::vector<std::vector<std::string>> each;      // [experiments] `each:`, the same
  std::vector<std::uint64_t> seeds;                // empty: as in the experiment
  int folds = 0;                                   // 0: as in the experiment
  bool no_folds = false;  // `folds: none`: one member, which trains on all training graphs
  std::vector<SweptKey> over;
  std::optional<int> draws;  // number of drawn variants; nothing: the grid of all values
  std::uint64_t draw_seed = 1;
  bool split = false;  // placement: as in EnsembleConfig
  // Synchronous successive halving (Jamieson and Talwalkar, "Non-stochastic best arm identification
  // and hyperparameter optimization", AISTATS 2016). All variants train for a few steps, the best
  // 1/keep of them for `keep` times as many, and so on; the last of `rungs` rungs trains all steps.
  // Every rung trains from the start, because schedules depend on the share of all steps.
  int rungs = 1, keep = 3;
  ChoiceScore choice = ChoiceScore::none;
  bool choice_halves = true;  // choose on one half of the validation families, confirm on the other
  int fresh_seeds = 3;        // of the runs that confirm the chosen variants
  std::vector<std::string> confirm_overrides;
  bool baseline = false;  // also train the first variant with the fresh seeds

  std::string resolved_yaml;

  // The overrides of all runs of an experiment: `set:` and then `each:`.
  std::vector<std::string> overrides_of(int experiment) const;

  // Throws one ConfigError that lists the mistakes, each as
  // `file:line:column: "sweep.over.optimizer.lr" ...`. Reads the file again.
  [[noreturn]] void refuse(const SetMistakes& mistakes) const;

  // Names of experiments are relative to `base`; if it is empty, to the folder of the file. Throws
  // ConfigError with every mistake.
  static SweepFile load(const std::filesystem::path& path,
                        const std::vector<std::string>& overrides = {},
                        const std::filesystem::path& base = {});

 private:
  std::filesystem::path path_, base_;
  std::vector<std::string> own_overrides_;  // as given to load()
};

// The JSON Schema of sweep files (config_schema).
std::string sweep_schema();

// Whether a YAML file is a sweep file, which names experiments. Throws ConfigError when the file
// cannot be read or is not YAML.
bool is_sweep_file(const std::filesystem::path& path,
                   const std::vector<std::string>& overrides = {});

// One way to train in a sweep: an experiment and values for the swept keys.
struct Variant {
  int experiment = 0;                 // index into SweepFile::experiments
  std::vector<std::string> settings;  // key=YAML, in the order of the sweep file; may be empty
  bool operator==(const Variant&) const = default;
};

// All variants of a sweep, experiment after experiment: the grid of all values, with the last key
// varying fastest, or the drawn variants, without duplicates.
std::vector<Variant> variants_of(const SweepFile& sweep);

// "nlp: optimizer.lr=0.001 batch.configs=32"; without the name if there is one experiment.
std::string label_of(const Variant& variant, const SweepFile& sweep);

}  // namespace tpudist
