#include "models/plans/join_plans.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <span>
#include <string>

#include "core/error.hpp"

namespace tpudist {
namespace {

using Kind = std::shared_ptr<const UnitRows>;

constexpr std::int64_t kRunRows = 4;

// One matrix of a unit; replica k of row r is row r * replicas + k.
struct Part {
  const Csr* matrix = nullptr;  // null: the unit is missing
  std::int32_t replicas = 1;
};

// Fills what follows from the runs.
void fill(UnitRows& rows) {
  to_index32(rows.rows);
  rows.run_of_row.resize(static_cast<std::size_t>(rows.rows));
  rows.rows_of_run.begin.push_back(0);
  for (std::size_t run = 0; run < rows.runs.size(); ++run) {
    const auto [begin, count] = rows.runs[run];
    const bool last = run + 1 == rows.runs.size();
    const std::int64_t end = last ? rows.rows : rows.runs[run + 1].begin;
    std::fill(rows.run_of_row.begin() + begin, rows.run_of_row.begin() + end,
              static_cast<std::int32_t>(run));
    std::vector<std::int32_t>& source = rows.rows_of_run.source;
    source.resize(source.size() + static_cast<std::size_t>(count));
    std::iota(source.end() - count, source.end(), static_cast<std::int32_t>(begin));
    rows.rows_of_run.begin.push_back(static_cast<std::int32_t>(source.size()));
  }
}

class PlanJoin {
 public:
  explicit PlanJoin(const std::vector<std::vector<const Plan*>>& blocks) {
    units_.blocks = static_cast<int>(blocks.size());
    units_.slots = static_cast<int>(blocks.front().size());
    for (const auto& block : blocks) plans_.insert(plans_.end(), block.begin(), block.end());
  }

  std::shared_ptr<const Plan> join() {
    const Plan& first = **std::ranges::find_if(plans_, [](const Plan* plan) { return plan; });
    auto joined = std::make_shared<Plan>();
    units_.nodes = kind([](const Plan& plan) { return plan.nodes; });
    units_.states = kind([](const Plan& plan) { return plan.states + 1; });
    units_.configs = kind([](const Plan& plan) { return plan.configs; });
    const Kind first_rows = kind([](const Plan& plan) { return plan.first_rows(); });
    joined->nodes = units_.nodes->rows;
    joined->states = units_.states->rows - 1;
    joined->configs = units_.configs->rows;
    joined->node =
        index([](const Plan& plan) { return std::span(plan.node); }, *first_rows, *units_.nodes, 0);
    joined->rows_of_node = matrix([](const Plan& plan) { return Part{&plan.rows_of_node}; },
                                  *units_.nodes, *first_rows);
    joined->state = index([](const Plan& plan) { return std::span(plan.state); }, *first_rows,
                          *units_.states, -1);
    if (!first.config.empty())
      joined->config = index([](const Plan& plan) { return std::span(plan.config); }, *first_rows,
                             *units_.configs, -1);
    if (!first.state_of_config.empty())
      joined->state_of_config =
          index([](const Plan& plan) { return std::span(plan.state_of_config); }, *units_.configs,
                *units_.states, -1);
    joined->needed_first_rows = first_rows->rows;
    Kind rows = first_rows;
    for (std::size_t i = 0; i < first.layers.size(); ++i) {
      const Kind after = kind([i](const Plan& plan) { return plan.layers[i]->rows_out; });
      joined->layers.push_back(layer(i, first, *rows, *after));
      NeededCounts& counts = joined->needed_counts.emplace_back();
      counts.rows = after->rows;
      counts.self_rows = rows->rows;
      for (const EdgeSet& edges : joined->layers.back()->edges)
        counts.neighbourhoods.push_back(edges.aggregate.forward.rows());
      rows = after;
    }
    joined->readout = readout(*rows);
    joined->units = std::make_shared<const JoinedUnits>(units_);
    return joined;
  }

 private:
  // The rows of which each unit has count(plan).
  template <typename Count>
  Kind kind(const Count& count) {
    std::vector<std::int64_t> counts;
    for (const Plan* const plan : plans_) counts.push_back(plan ? count(*plan) : 0);
    return units_.kind(counts);
  }

  // Calls body(run, plan) for the units that are there, in order.
  template <typename Body>
  void for_units(const Body& body) const {
    for (std::size_t run = 0; run < plans_.size(); ++run) {
      if (plans_[run]) body(run, *plans_[run]);
    }
  }

  // The matrices of(plan) in one.
  template <typename Of>
  Csr matrix(const Of& of, const UnitRows& rows, const UnitRows& sources) const {
    Csr joined;
    std::int64_t entries = 0;
    bool weighted = false;
    for_units([&](std::size_t, const Plan& plan) {
      const Part part = of(plan);
      entries += part.matrix->entries() * part.replicas;
      weighted = weighted || !part.matrix->weight.empty();
    });
    to_index32(entries);
    joined.begin.resize(static_cast<std::size_t>(rows.rows) + 1);
    joined.source.resize(static_cast<std::size_t>(entries));
    if (weighted) joined.weight.resize(static_cast<std::size_t>(entries), 1);
    auto begin = joined.begin.begin();
    std::int32_t at = 0;
    for_units([&](std::size_t run, const Plan& plan) {
      const auto [matrix, replicas] = of(plan);
      const auto first = joined.begin.begin() + rows.runs[run].begin;
      std::fill(begin, first + 1, at);
      begin = first + 1;
      const auto from = static_cast<std::int32_t>(sources.runs[run].begin);
      if (replicas == 1) {
        begin = std::transform(matrix->begin.begin() + 1, matrix->begin.end(), begin,
                               [at](std::int32_t end) { return at + end; });
        std::ranges::transform(matrix->source, joined.source.begin() + at,
                               [from](std::int32_t source) { return from + source; });
        std::ranges::copy(matrix->weight, joined.weight.begin() + (weighted ? at : 0));
        at += static_cast<std::int32_t>(matrix->entries());
        return;
      }
      for (std::int64_t row = 0; row < matrix->rows(); ++row) {
        for (std::int32_t replica = 0; replica < replicas; ++replica) {
          for (std::int32_t e = matrix->begin[row]; e < matrix->begin[row + 1]; ++e, ++at) {
            joined.source[at] = matrix->source[e] * replicas + replica + from;
            if (weighted) joined.weight[at] = matrix->weight_of(e);
          }
          *begin++ = at;
        }
      }
    });
    std::fill(begin, joined.begin.end(), at);
    return joined;
  }

  // The indices of(plan) in one, from `rows` into `values`. -1 stays; padding takes `padding`.
  template <typename Of>
  std::vector<std::int32_t> index(const Of& of, const UnitRows& rows, const UnitRows& values,
                                  std::int32_t padding) const {
    std::vector<std::int32_t> joined(static_cast<std::size_t>(rows.rows), padding);
    for_units([&](std::size_t run, const Plan& plan) {
      const auto from = static_cast<std::int32_t>(values.runs[run].begin);
      std::ranges::transform(
          of(plan), joined.begin() + rows.runs[run].begin,
          [from](std::int32_t value) { return value < 0 ? value : value + from; });
    });
    return joined;
  }

  template <typename Of>
  SparseMatrix both(const Of& of, const UnitRows& rows, const UnitRows& sources) const {
    return {matrix(
                [&](const Plan& plan) {
                  return Part{&of(plan).forward, of(plan).replicas};
                },
                rows, sources),
            matrix(
                [&](const Plan& plan) {
                  return Part{&of(plan).transposed, of(plan).replicas};
                },
                sources, rows),
            1};
  }

  template <typename Of>
  GatherIndex gather(const Of& of, const UnitRows& rows, const UnitRows& values) const {
    bool identity = &rows == &values;
    for_units(
        [&](std::size_t, const Plan& plan) { identity = identity && of(plan).is_identity(); });
    if (identity) return {};
    // The identity of each unit that has it, written out.
    std::map<const GatherIndex*, GatherIndex> written;
    for_units([&](std::size_t run, const Plan& plan) {
      if (!of(plan).is_identity()) return;
      GatherIndex& own = written[&of(plan)];
      own.index.resize(static_cast<std::size_t>(rows.runs[run].count));
      std::iota(own.index.begin(), own.index.end(), 0);
      own.transposed = transpose_index(own.index, values.runs[run].count);
    });
    const auto found = [&](const Plan& plan) -> const GatherIndex& {
      return of(plan).is_identity() ? written.at(&of(plan)) : of(plan);
    };
    return {index([&](const Plan& plan) { return std::span(found(plan).index); }, rows, values, 0),
            matrix([&](const Plan& plan) { return Part{&found(plan).transposed}; }, values, rows)};
  }

  // Layer i, shared with an equal one where the units share theirs.
  std::shared_ptr<const PlanLayer> layer(std::size_t i, const Plan& first, const UnitRows& before,
                                         const UnitRows& after) {
    std::vector<const PlanLayer*> own;
    for_units([&](std::size_t, const Plan& plan) { own.push_back(plan.layers[i].get()); });
    std::shared_ptr<const PlanLayer>& kept = layers_[own];
    if (kept) return kept;
    auto joined = std::make_shared<PlanLayer>();
    joined->rows_in = before.rows;
    joined->rows_out = after.rows;
    joined->self =
        gather([i](const Plan& plan) -> const GatherIndex& { return plan.layers[i]->self; }, after,
               before);
    for (std::size_t set = 0; set < first.layers[i]->edges.size(); ++set) {
      const auto edges = [i, set](const Plan& plan) -> const EdgeSet& {
        return plan.layers[i]->edges[set];
      };
      const Kind around = kind([&](const Plan& plan) {
        const SparseMatrix& aggregate = edges(plan).aggregate;
        return aggregate.forward.rows() * aggregate.replicas;
      });
      joined->edges.push_back(
          {both([&](const Plan& plan) -> const SparseMatrix& { return edges(plan).aggregate; },
                *around, before),
           gather([&](const Plan& plan) -> const GatherIndex& { return edges(plan).neighbourhood; },
                  after, *around)});
    }
    if (!first.layers[i]->state.empty())
      joined->state = index([i](const Plan& plan) { return std::span(plan.layers[i]->state); },
                            after, *units_.states, -1);
    return kept = joined;
  }

  Readout readout(const UnitRows& rows) {
    Readout joined;
    const Kind cells = kind([](const Plan& plan) {
      return plan.readout.cells.forward.rows() * plan.readout.cells.replicas;
    });
    const Kind slates = kind([](const Plan& plan) { return plan.readout.common.forward.rows(); });
    const auto part = [&](SparseMatrix Readout::*matrix, const UnitRows& to, const UnitRows& from) {
      joined.*matrix = both(
          [&](const Plan& plan) -> const SparseMatrix& { return plan.readout.*matrix; }, to, from);
    };
    part(&Readout::cells, *cells, rows);
    part(&Readout::scores, *units_.configs, *cells);
    part(&Readout::common, *slates, rows);
    joined.slate_of_config =
        index([](const Plan& plan) { return std::span(plan.readout.slate_of_config); },
              *units_.configs, *slates, 0);
    for_units([&](std::size_t run, const Plan& plan) {
      const std::vector<double>& left_out = plan.readout.left_out;
      if (left_out.empty()) return;
      joined.left_out.resize(static_cast<std::size_t>(slates->rows));
      std::ranges::copy(left_out, joined.left_out.begin() + slates->runs[run].begin);
    });
    return joined;
  }

  JoinedUnits units_;
  std::vector<const Plan*> plans_;  // [blocks * slots]
  std::map<std::vector<const PlanLayer*>, std::shared_ptr<const PlanLayer>> layers_;
};

}  // namespace

std::shared_ptr<const UnitRows> JoinedUnits::kind(const std::vector<std::int64_t>& counts) {
  const auto per_block = static_cast<std::size_t>(slots);
  const auto aligned = [](std::int64_t rows, std::int64_t step) {
    return (rows + step - 1) / step * step;
  };
  std::int64_t block_rows = 0;
  for (std::size_t begin = 0; begin < counts.size(); begin += per_block) {
    std::int64_t rows = 0;
    for (const std::int64_t own : std::span(counts).subspan(begin, per_block))
      rows += aligned(own, kRunRows);
    block_rows = std::max(block_rows, rows);
  }
  for (block_rows = aligned(block_rows, kBlockRows);; block_rows += kBlockRows) {
    auto made = std::make_shared<UnitRows>();
    made->rows = block_rows * blocks;
    for (std::size_t run = 0; run < counts.size(); ++run) {
      const std::int64_t begin =
          run % per_block == 0
              ? static_cast<std::int64_t>(run / per_block) * block_rows
              : aligned(made->runs.back().begin + made->runs.back().count, kRunRows);
      made->runs.push_back({begin, counts[run]});
    }
    const auto same = std::ranges::find(kinds, made->rows, &UnitRows::rows);
    if (same == kinds.end()) {
      fill(*made);
      return kinds.emplace_back(std::move(made));
    }
    if ((*same)->runs == made->runs) return *same;
  }
}

const UnitRows& JoinedUnits::of(std::int64_t rows) const {
  const auto found = std::ranges::find(kinds, rows, &UnitRows::rows);
  if (found == kinds.end())
    throw Error(ErrorKind::failed,
                "no kind of rows of a joined plan has " + std::to_string(rows) + " rows");
  return **found;
}

std::shared_ptr<const Plan> join_plans(const std::vector<std::vector<const Plan*>>& blocks) {
  return PlanJoin(blocks).join();
}

}  // namespace tpudist
