#include "results/system_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "results/result_set.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// "0 (rate=0.1), 1 (rate=0.2)"
std::string variants_text(const std::vector<std::string>& labels) {
  std::vector<std::string> pieces;
  for (std::size_t v = 0; v < labels.size(); ++v)
    pieces.push_back(fmt::format("{} ({})", v, labels[v]));
  return join(pieces, ", ");
}

// The label of a variant that a user names by its number or label.
std::string variant_label(const std::vector<std::string>& labels, const std::string& folder,
                          const std::string& wanted) {
  for (std::size_t v = 0; v < labels.size(); ++v) {
    if (labels[v] == wanted || std::to_string(v) == wanted) return labels[v];
  }
  throw ConfigError(
      fmt::format("{} has no variant {}; it has {}", folder, wanted, variants_text(labels)));
}

// The runs of a sweep, of the variant `wanted` or, where that is empty, of its only one.
std::vector<RunRecord> variant_runs(ResultSet results, const std::string& folder,
                                    const std::string& wanted) {
  const std::vector<std::string>& labels = results.sweep->labels;
  std::string label;
  if (!wanted.empty()) {
    label = variant_label(labels, folder, wanted);
  } else {
    std::set<std::string> known;
    for (const RunRecord& run : results.runs) known.insert(run.variant);
    if (known.size() > 1)
      throw ConfigError(fmt::format("{} has several variants; name one as {}:NUMBER: {}", folder,
                                    folder, variants_text(labels)));
    label = *known.begin();
  }
  std::erase_if(results.runs, [&](const RunRecord& run) { return run.variant != label; });
  if (results.runs.empty())
    throw ConfigError(
        fmt::format("{} has no runs of {} in its stage {}", folder, label, results.stage));
  return std::move(results.runs);
}

std::vector<RunRecord> read_input(const std::string& input) {
  std::string folder = input, variant;
  // A label may hold colons itself, and so may a path.
  for (std::size_t at = input.find(':'); at != std::string::npos && !fs::exists(folder);
       at = input.find(':', at + 1)) {
    if (!fs::is_directory(input.substr(0, at))) continue;
    folder = input.substr(0, at);
    variant = input.substr(at + 1);
  }
  ResultSet results = read_results({folder});
  if (results.sweep) return variant_runs(std::move(results), folder, variant);
  if (!variant.empty())
    throw ConfigError(fmt::format("{}: {} is no sweep and has no variants", input, folder));
  return std::move(results.runs);
}

}  // namespace

std::vector<RunRecord> read_system(std::span<const std::string> inputs) {
  std::vector<RunRecord> runs;
  for (const std::string& input : inputs) {
    for (RunRecord& run : read_input(input)) {
      // Two runs may have one name; their folders differ.
      if (run.index < 0) run.label = run.path.string();
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::string missing_text(const SystemPair& pair) {
  std::vector<std::string> lines = pair.a.left_out;
  lines.insert(lines.end(), pair.b.left_out.begin(), pair.b.left_out.end());
  return lines.empty() ? "no run has any" : join(lines, "; ");
}

}  // namespace tpudist
