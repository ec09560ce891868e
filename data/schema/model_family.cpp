#include "data/schema/model_family.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "data/schema/collection.hpp"

namespace tpudist {
namespace {

struct KnownFamily {
  std::string_view word;  // as in names, without separators
  std::string_view family;
};

// The first match wins: models built on a backbone come before backbones.
constexpr KnownFamily kKnownFamilies[] = {
    {"maskrcnn", "mask_rcnn"},
    {"fasterrcnn", "faster_rcnn"},
    {"shapemask", "shapemask"},
    {"retinanet", "retinanet"},
    {"ssd", "ssd"},
    {"efficientnet", "efficientnet"},
    {"mnasnet", "mnasnet"},
    {"mobilenet", "mobilenet"},
    {"inception", "inception"},
    {"xception", "xception"},
    {"wideresnet", "wideresnet"},
    {"resnet", "resnet"},
    {"alexnet", "alexnet"},
    {"unet", "unet"},
    {"albert", "albert"},
    {"electra", "electra"},
    {"talkingheads", "talking_heads"},
    {"bert", "bert"},
    {"transformer", "transformer"},
    {"magenta", "magenta"},
    {"openai", "openai"},
    {"trax", "trax"},
    {"ncf", "ncf"},
    {"dlrm", "dlrm"},
};

// Words that say how a model was run or measured.
constexpr auto kRunWords = std::to_array<std::string_view>(
    {"batch",       "size",  "train",    "training", "test",  "eval",     "inference",
     "mlperf",      "tf2",   "official", "dynamic",  "shape", "sequence", "length",
     "performance", "shard", "shards",   "fast",     "epoch", "main",     "bf16",
     "fp16",        "fp32",  "f16",      "f32",      "fp64",  "f64",      "int8"});

// Not from <cctype>, whose functions depend on the locale.
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_separator(char c) {
  return c == '.' || c == '_' || c == '-';
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// Letters, then a number: "v2", "b7", "img1024".
bool is_numbered(std::string_view token, std::string_view letters) {
  return token.starts_with(letters) && all_digits(token.substr(letters.size()));
}

// A topology such as "4x4" or "2x2x2".
bool is_mesh(std::string_view token) {
  return token.find('x') != std::string_view::npos && is_digit(token.front()) &&
         is_digit(token.back()) &&
         std::ranges::all_of(token, [](char c) { return is_digit(c) || c == 'x'; });
}

bool is_hash(std::string_view token) {
  return token.size() >= 12 &&
         std::ranges::all_of(token, [](char c) { return is_digit(c) || (c >= 'a' && c <= 'f'); });
}

std::vector<std::string_view> tokens_of(std::string_view name) {
  std::vector<std::string_view> tokens;
  for (std::size_t begin = 0, i = 0; i <= name.size(); ++i) {
    if (i < name.size() && !is_separator(name[i])) continue;
    if (i > begin) tokens.push_back(name.substr(begin, i - begin));
    begin = i + 1;
  }
  return tokens;
}

// Whether the concatenated `tokens` begin with `word`. Short words must not continue with letters:
// "ssd" is not in "ssdeep".
bool begins_with(std::span<const std::string_view> tokens, std::string_view word) {
  constexpr std::size_t kShort = 4;
  const bool is_short = word.size() <= kShort;
  for (const std::string_view token : tokens) {
    if (token.size() >= word.size()) {
      return token.starts_with(word) &&
             !(is_short && token.size() > word.size() && is_letter(token[word.size()]));
    }
    if (!word.starts_with(token)) return false;
    word.remove_prefix(token.size());
  }
  return false;
}

std::string_view known_family(std::span<const std::string_view> tokens) {
  for (const KnownFamily& known : kKnownFamilies) {
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (begins_with(tokens.subspan(i), known.word)) return known.family;
  }
  return {};
}

// The number after a token "l", as in "bert_en_cased_L-12_H-768"; empty if there is none.
std::string_view stated_depth(std::span<const std::string_view> tokens) {
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
    if (tokens[i] == "l" && all_digits(tokens[i + 1])) return tokens[i + 1];
  return {};
}

// "fusion.206_10": an HLO instruction and its number, and the number of the kernel.
bool is_kernel(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const std::string_view rest = name.substr(dot + 1);
  const std::size_t underscore = rest.find('_');
  return all_digits(rest.substr(0, underscore)) &&
         (underscore == std::string_view::npos || all_digits(rest.substr(underscore + 1)));
}

bool says_nothing(std::span<const std::string_view> tokens, std::size_t i) {
  const std::string_view token = tokens[i];
  const bool parameter = token.size() == 1 && is_letter(token[0]) && i + 1 < tokens.size() &&
                         all_digits(tokens[i + 1]);  // "H-768"
  return parameter || all_digits(token) || is_mesh(token) || is_hash(token) ||
         is_numbered(token, "v") || is_numbered(token, "b") || is_numbered(token, "bs") ||
         is_numbered(token, "img") || std::ranges::find(kRunWords, token) != kRunWords.end();
}

// The graphs of one family.
struct FamilyGraphs {
  std::vector<std::size_t> graphs;
  double weight = 0;
};

std::map<std::string, FamilyGraphs> families_of(const std::vector<std::string>& names,
                                                const std::vector<double>& weights) {
  std::map<std::string, FamilyGraphs> families;
  for (std::size_t i = 0; i < names.size(); ++i)
    families[model_family(names[i])].graphs.push_back(i);
  for (auto& [name, family] : families) {
    // Sorted, so that rounding does not depend on the order of the graphs.
    std::vector<double> own;
    for (const std::size_t graph : family.graphs) own.push_back(weights[graph]);
    std::ranges::sort(own);
    for (const double weight : own) family.weight += weight;
  }
  return families;
}

// Equal for weights between the same powers of two; the least for 0.
int size_class(double weight) {
  return weight > 0 ? std::ilogb(weight) : std::numeric_limits<int>::min();
}

void check_arguments(std::size_t graphs, const std::vector<double>& weights, int folds) {
  if (weights.size() != graphs) {
    throw ConfigError(fmt::format("folds need one weight for each of the {} graphs, not {}", graphs,
                                  weights.size()));
  }
  for (const double weight : weights) {
    if (!std::isfinite(weight) || weight < 0)
      throw ConfigError(fmt::format("{} cannot be the weight of a graph in a fold", weight));
  }
  if (folds < 1) throw ConfigError(fmt::format("{} folds are not possible; use 1 or more", folds));
}

void check_enough(const std::map<std::string, FamilyGraphs>& families, std::size_t graphs,
                  int folds) {
  if (families.size() >= static_cast<std::size_t>(folds)) return;
  std::vector<std::string> names;
  for (const auto& [name, family] : families) names.push_back(name);
  throw ConfigError(
      fmt::format("{} folds need as many model families, but the {} graphs are of {}: {}; use "
                  "fewer folds or none",
                  folds, graphs, families.size(), join(names, ", ")));
}

}  // namespace

std::string model_family(std::string_view graph_name) {
  std::string name(graph_of_id(graph_name));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  const std::vector<std::string_view> tokens = tokens_of(name);

  if (const std::string_view family = known_family(tokens); !family.empty()) {
    const std::string_view depth = family == "bert" ? stated_depth(tokens) : std::string_view();
    return depth.empty() ? std::string(family) : fmt::format("{}_l{}", family, depth);
  }
  if (is_kernel(name)) return name;
  std::string family;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (says_nothing(tokens, i)) continue;
    if (!family.empty()) family += '_';
    family += tokens[i];
  }
  return family.empty() ? name : family;
}

std::vector<int> assign_folds(const std::vector<std::string>& graph_names,
                              const std::vector<double>& weights, int folds, std::uint64_t seed) {
  check_arguments(graph_names.size(), weights, folds);
  const std::map<std::string, FamilyGraphs> families = families_of(graph_names, weights);
  check_enough(families, graph_names.size(), folds);

  std::vector<const FamilyGraphs*> order;
  for (const auto& [name, family] : families) order.push_back(&family);
  CounterRng(seed).shuffle(std::span(order));
  std::ranges::stable_sort(order, std::greater<>{},
                           [](const auto* family) { return size_class(family->weight); });

  std::vector<double> total(static_cast<std::size_t>(folds));
  std::vector<std::size_t> families_in(total.size());
  std::vector<int> fold_of(graph_names.size());
  for (const FamilyGraphs* family : order) {
    // By weight, then by families, so that no fold stays empty when weights are 0.
    std::size_t fold = 0;
    for (std::size_t f = 1; f < total.size(); ++f) {
      if (std::pair(total[f], families_in[f]) < std::pair(total[fold], families_in[fold])) fold = f;
    }
    total[fold] += family->weight;
    ++families_in[fold];
    for (const std::size_t graph : family->graphs) fold_of[graph] = static_cast<int>(fold);
  }
  return fold_of;
}

}  // namespace tpudist
