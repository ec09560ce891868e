#include "train/experiment/read_ensemble.hpp"

#include <fmt/format.h>

#include <charconv>

#include "train/experiment/limits.hpp"

namespace tpudist {
namespace {

int read_folds(ConfigNode& ensemble) {
  const std::string text = ensemble.text("folds", "none");
  if (text == "none") return 0;
  int folds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), folds);
  if (error != std::errc{} || end != text.data() + text.size() || folds < 2) {
    ensemble.mistake("folds", "must be `none` or a number of folds, at least 2");
    return 0;
  }
  return folds;
}

}  // namespace

EnsembleConfig read_ensemble(ConfigNode ensemble) {
  EnsembleConfig config;
  config.members = positive(ensemble, "members", 1, 1024);
  config.first_member = static_cast<int>(ensemble.integer("first_member", 0, {0, 1 << 20}));
  config.folds = read_folds(ensemble);
  config.fold_seed = static_cast<std::uint64_t>(ensemble.integer("fold_seed", 1, {0, kMany}));
  if (const std::string file = ensemble.text("fold_file", "none"); file != "none") {
    config.fold_file = file;
    if (config.folds == 0) {
      ensemble.mistake("fold_file", "says which fold each graph has: give their number as `folds`");
    }
  }
  config.vary_init = false;
  for (const std::string& what : ensemble.texts("vary", {"init"})) {
    if (what == "init") {
      config.vary_init = true;
    } else if (what == "order") {
      config.vary_order = true;
    } else if (what == "fold") {
      config.vary_fold = true;
    } else {
      ensemble.mistake("vary", fmt::format("\"{}\" is none of init, order, fold", what));
    }
  }
  config.placement = ensemble.choice("placement", "fused", {"fused", "split"}) == "split"
                         ? Placement::split
                         : Placement::fused;
  if (config.vary_fold && config.folds == 0 && ensemble.has("folds") == false) {
    ensemble.mistake("vary", "varies the fold, but `folds` is not given");
  }
  if (config.folds == 0) config.vary_fold = false;
  if (ensemble.choice("fold_over", "train", {"train", "train+valid"}) == "train+valid") {
    config.fold_over = FoldOver::train_and_valid;
    if (!config.holds_out()) {
      ensemble.mistake("fold_over",
                       "trains members on the validation split but for their own fold: give "
                       "`folds`, and `fold` in `vary`");
    }
  }
  return config;
}

}  // namespace tpudist
