#include "data/loading/slate_order.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "core/error.hpp"
#include "core/random.hpp"

namespace tpudist {
namespace {

// What a key is for, so that no two permutations share one.
enum Purpose : std::uint64_t { kSlates = 1, kRows = 2 };

std::uint64_t word(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

}  // namespace

SlateOrder::SlateOrder(const OrderOptions& options, std::vector<std::int64_t> rows_per_graph,
                       std::uint64_t selection_hash)
    : options_(options),
      rows_per_graph_(std::move(rows_per_graph)),
      key_(mix_key({options.seed, selection_hash, word(options.configs_per_slate)})) {
  if (options_.slates_per_batch < 1 || options_.configs_per_slate < 1) {
    throw ConfigError("a batch needs at least one slate of at least one configuration, not " +
                      std::to_string(options_.slates_per_batch) + " of " +
                      std::to_string(options_.configs_per_slate));
  }
  std::int64_t slates = 0, graphs = 0;
  for (const std::int64_t rows : rows_per_graph_) {
    slates += slates_of_pass(rows);
    graphs += rows > 0;
  }
  if (slates == 0) throw ConfigError("there is nothing to train on: no graph has a configuration");

  const std::int64_t mean = (slates + graphs / 2) / graphs;  // rounded, at least 1
  first_slate_.assign(1, 0);
  for (const std::int64_t rows : rows_per_graph_) {
    const std::int64_t own = slates_of_pass(rows);
    const std::int64_t drawn = options_.draw == DrawMode::rows ? own : own > 0 ? mean : 0;
    first_slate_.push_back(first_slate_.back() + drawn);
  }
}

std::int64_t SlateOrder::slates_of_pass(std::int64_t rows) const {
  if (rows <= 0) return 0;
  return std::max<std::int64_t>(rows / options_.configs_per_slate, 1);  // 1: a short slate
}

std::int64_t SlateOrder::steps_per_epoch() const {
  return (slates_per_epoch() + options_.slates_per_batch - 1) / options_.slates_per_batch;
}

std::int64_t SlateOrder::slates_of(int graph) const {
  const auto i = static_cast<std::size_t>(graph);
  return first_slate_.at(i + 1) - first_slate_.at(i);
}

SlateId SlateOrder::item(std::int64_t step, int index) const {
  if (step < 0 || index < 0 || index >= options_.slates_per_batch) {
    throw std::out_of_range("no item " + std::to_string(index) + " of step " +
                            std::to_string(step));
  }
  SlateId slate;
  slate.epoch = step / steps_per_epoch();
  const std::int64_t position = step % steps_per_epoch() * options_.slates_per_batch + index;
  slate.weight = position < slates_per_epoch() ? 1 : 0;

  const KeyedPermutation shuffled(word(slates_per_epoch()),
                                  mix_key({key_, kSlates, word(slate.epoch)}));
  const auto drawn = static_cast<std::int64_t>(shuffled(word(position % slates_per_epoch())));
  // The last graph whose first slate is not beyond; graphs without slates are stepped over.
  const auto after = std::ranges::upper_bound(first_slate_, drawn);
  slate.graph = static_cast<int>(after - first_slate_.begin()) - 1;
  slate.number = drawn - *(after - 1);
  return slate;
}

std::vector<std::int64_t> SlateOrder::rows(const SlateId& slate, int member) const {
  const std::int64_t total = rows_per_graph_.at(static_cast<std::size_t>(slate.graph));
  if (slate.number < 0 || slate.number >= slates_of(slate.graph) || member < -1) {
    throw std::out_of_range("no slate " + std::to_string(slate.number) + " of graph " +
                            std::to_string(slate.graph) + " for member " + std::to_string(member));
  }
  const std::int64_t pass = slate.number / slates_of_pass(total);
  const std::int64_t first = slate.number % slates_of_pass(total) * options_.configs_per_slate;
  const KeyedPermutation shuffled(
      word(total),
      mix_key({key_, kRows, word(slate.graph), word(slate.epoch), word(pass), word(member + 1)}));
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(std::min<std::int64_t>(options_.configs_per_slate, total - first)));
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i] = static_cast<std::int64_t>(shuffled(word(first) + i));
  return rows;
}

}  // namespace tpudist
