#include "dist/health/agreement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/process.hpp"
#include "core/text.hpp"

namespace tpudist {
namespace {

constexpr std::size_t kMostNamed = 5;    // differing values in one message
constexpr std::size_t kMostShown = 160;  // bytes of a value

using Values = std::vector<AgreedValue>;

// Neither names nor values hold a NUL: they come from text files and arguments.
std::string encode(std::span<const AgreedValue> values) {
  std::string text;
  for (const AgreedValue& value : values) {
    text.append(value.name).push_back('\0');
    text.append(value.value).push_back('\0');
  }
  return text;
}

Values decode(std::string_view text) {
  Values values;
  const std::vector<std::string> pieces = split(text, '\0');
  for (std::size_t i = 0; i + 1 < pieces.size(); i += 2) {
    values.push_back({pieces[i], pieces[i + 1]});
  }
  return values;
}

// The value of this name, as shown and compared.
std::string value_of(const Values& values, std::string_view name) {
  const auto found = std::ranges::find(values, name, &AgreedValue::name);
  return found == values.end() ? "not given" : found->value;
}

// The value as shown in messages: a long value is cut, with a hash that tells it apart.
std::string shown(const std::string& value) {
  if (value.empty()) return "empty";
  if (value.size() <= kMostShown) return value;
  return fmt::format("{}... ({})", value.substr(0, kMostShown), to_hex(hash64(value)));
}

// All names of all ranks, in the order in which the ranks give them.
std::vector<std::string> names_of(const std::vector<Values>& ranks) {
  std::vector<std::string> names;
  for (const Values& values : ranks) {
    for (const AgreedValue& value : values) {
      if (std::ranges::find(names, value.name) == names.end()) names.push_back(value.name);
    }
  }
  return names;
}

// "train.steps: 100 on rank 0, 200 on ranks 1, 2", or "" if all ranks have the same value.
std::string difference(const std::vector<Values>& ranks, const std::string& name) {
  std::vector<std::pair<std::string, std::vector<int>>> holders;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    const std::string value = value_of(ranks[rank], name);
    auto holder = std::ranges::find(holders, value, [](const auto& h) { return h.first; });
    if (holder == holders.end()) holder = holders.insert(holder, {value, {}});
    holder->second.push_back(static_cast<int>(rank));
  }
  if (holders.size() == 1) return {};
  std::vector<std::string> parts;
  for (const auto& [value, of] : holders) {
    parts.push_back(fmt::format("{} on {}", shown(value), rank_list(of)));
  }
  return fmt::format("{}: {}", name, join(parts, ", "));
}

bool equal_everywhere(Communicator& communicator, std::uint64_t hash) {
  const std::vector<std::uint64_t> all =
      all_gather_variable(communicator, std::span<const std::uint64_t>(&hash, 1));
  return std::ranges::all_of(all, [&](std::uint64_t other) { return other == all[0]; });
}

// The differences between ranks, the same text on all ranks; "" if there are none.
std::string disagreement(Communicator& communicator, std::span<const AgreedValue> values) {
  const std::string mine = encode(values);
  if (equal_everywhere(communicator, hash64(mine))) return {};
  std::vector<Values> ranks;
  for (const std::string& text : all_gather_text(communicator, mine)) ranks.push_back(decode(text));
  std::vector<std::string> differences;
  for (const std::string& name : names_of(ranks)) {
    if (std::string found = difference(ranks, name); !found.empty()) {
      differences.push_back(std::move(found));
    }
  }
  if (differences.empty()) return "the order of the values differs between ranks";
  const std::size_t more = differences.size() - std::min(differences.size(), kMostNamed);
  differences.resize(differences.size() - more);
  return join(differences, "; ") + (more > 0 ? fmt::format("; and {} more", more) : "");
}

}  // namespace

void require_agreement(Communicator& communicator, std::span<const AgreedValue> values,
                       std::string_view advice) {
  const std::string found = disagreement(communicator, values);
  if (!found.empty()) throw ConfigError(fmt::format("{}; {}", found, advice));
}

void require_equal_on_all_ranks(Communicator& communicator, std::uint64_t value,
                                std::string_view what) {
  const AgreedValue agreed{std::string(what), to_hex(value)};
  const std::string found = disagreement(communicator, std::span(&agreed, 1));
  if (found.empty()) return;
  const auto all = all_gather_variable(communicator, std::span<const std::uint64_t>(&value, 1));
  const std::vector<std::string> nodes = all_gather_text(communicator, host_name());
  std::vector<std::string> suspects;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (2 * std::ranges::count(all, all[rank]) <= std::ssize(all))
      suspects.push_back(fmt::format("rank {} ({})", rank, nodes[rank]));
  }
  throw DistError(fmt::format(
      "{}; look at {} for faulty memory, a faulty network or other versions of libraries, since "
      "ranks that compute the same must not differ; without {} go on from the last checkpoint with "
      "--resume",
      found, join(suspects, ", "), suspects.size() == 1 ? "that node" : "the faulty node"));
}

std::string rank_list(std::span<const int> ranks) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < ranks.size();) {
    std::size_t last = first;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    if (last < first + 2) last = first;  // two neighbours are listed one by one
    runs.push_back(last == first ? fmt::format("{}", ranks[first])
                                 : fmt::format("{} to {}", ranks[first], ranks[last]));
    first = last + 1;
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", join(runs, ", "));
}

}  // namespace tpudist
