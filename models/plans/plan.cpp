#include "models/plans/plan.hpp"

#include <set>
#include <string>

#include "core/error.hpp"
#include "models/plans/csr.hpp"

namespace tpudist {
namespace {

void require(bool holds, const std::string& what) {
  if (!holds) throw Error(ErrorKind::failed, "broken plan: " + what);
}

void check_csr(const Csr& csr, std::int64_t rows, std::int64_t columns, const std::string& name) {
  require(csr.rows() == rows,
          name + " has " + std::to_string(csr.rows()) + " rows instead of " + std::to_string(rows));
  require(csr.begin.front() == 0 && csr.begin.back() == csr.entries(),
          name + ": offsets do not span the entries");
  require(csr.weight.empty() || csr.weight.size() == csr.source.size(),
          name + ": weights and sources differ in number");
  for (std::int64_t row = 0; row < rows; ++row) {
    require(csr.begin[row] <= csr.begin[row + 1], name + ": offsets decrease");
    for (std::int64_t e = csr.begin[row]; e < csr.begin[row + 1]; ++e) {
      require(csr.source[e] >= 0 && csr.source[e] < columns, name + ": source out of range");
      require(e == csr.begin[row] || csr.source[e - 1] < csr.source[e],
              name + ": sources of row " + std::to_string(row) + " not sorted or not merged");
    }
  }
}

void check_transposed(const Csr& in, const Csr& out, const std::string& name) {
  const Csr expected = transpose(in, out.rows());
  require(
      expected.begin == out.begin && expected.source == out.source && expected.weight == out.weight,
      name + ": not the exact transpose");
}

void check_relation(const Relation& relation, std::int64_t rows_in, std::int64_t rows_out,
                    const std::string& name) {
  const std::int64_t lanes = relation.lanes;
  require(lanes >= 1 && rows_in % lanes == 0 && rows_out % lanes == 0,
          name + ": rows are no multiple of the lanes");
  check_csr(relation.in, rows_out / lanes, rows_in / lanes, name + ".in");
  check_csr(relation.out, rows_in / lanes, rows_out / lanes, name + ".out");
  check_transposed(relation.in, relation.out, name);
}

void check_index(const std::vector<std::int32_t>& index, std::int64_t low, std::int64_t groups,
                 const Csr& rows, const std::string& name) {
  for (const std::int32_t value : index) {
    require(value >= low && value < groups, name + ": index out of range");
  }
  check_csr(rows, groups, index.size(), "rows_of_" + name);
  const Csr expected = rows_of(index, groups);
  require(expected.begin == rows.begin && expected.source == rows.source && rows.weight.empty(),
          "rows_of_" + name + ": not the transpose");
}

void check_selection(const Selection& selection, std::int64_t rows, std::int64_t things,
                     const std::string& name) {
  if (selection.identity()) {
    require(rows == things, name + ": needs an explicit selection");
    return;
  }
  require(static_cast<std::int64_t>(selection.of.size()) == rows, name + ": wrong length");
  check_index(selection.of, 0, things, selection.rows, name);
}

// What the first `needed` rows of a selection take lies within the first `limit` things.
void check_needed(const Selection& selection, std::int64_t needed, std::int64_t limit,
                  const std::string& name) {
  for (std::int64_t row = 0; row < needed; ++row) {
    require(selection(row) < limit, name + ": a needed row takes what is not needed");
  }
}

void check_step(const Step& step, const std::string& name) {
  check_selection(step.self, step.rows_out, step.rows_in, name + ".self");
  for (const EdgeSet& edges : step.edges) {
    const std::int64_t groups = edges.sum.in.rows() * edges.sum.lanes;
    require(edges.group.identity() == step.self.identity(), name + ": shares rows only in part");
    check_relation(edges.sum, step.rows_in, groups, name + ".edges");
    check_selection(edges.group, step.rows_out, groups, name + ".edges");
  }
}

void check_needed_part(const Step& step, const NeededPart& part, std::int64_t needed_in,
                       const std::string& name) {
  require(part.rows >= 0 && part.rows <= step.rows_out, name + ": needed rows out of range");
  require(part.pasts >= 0 && part.pasts <= needed_in, name + ": a past is not needed");
  require(part.groups.size() == step.edges.size(), name + ": edge sets and needed groups differ");
  check_needed(step.self, part.rows, part.pasts, name + ".self");
  for (std::size_t set = 0; set < step.edges.size(); ++set) {
    const Relation& sum = step.edges[set].sum;
    const std::int64_t groups = part.groups[set], lanes = sum.lanes;
    require(groups >= 0 && groups <= sum.in.rows() * lanes && groups % lanes == 0,
            name + ".edges: needed groups out of range");
    check_needed(step.edges[set].group, part.rows, groups, name + ".edges");
    for (std::int64_t e = 0; e < sum.in.begin[groups / lanes]; ++e) {
      require((sum.in.source[e] + 1) * lanes <= needed_in,
              name + ".edges: a needed group takes what is not needed");
    }
  }
}

void check_readout(const Plan& plan, std::int64_t rows) {
  const Readout& readout = plan.readout;
  const std::int64_t cells = readout.cells.in.rows(), slates = readout.common.in.rows();
  check_relation(readout.cells, rows, cells, "readout.cells");
  check_relation(readout.pool, cells, plan.configs, "readout.pool");
  check_relation(readout.common, rows, slates, "readout.common");
  for (const std::int32_t row : readout.cells.in.source) {
    require(row < plan.needed_rows(plan.steps.size()), "readout: takes what is not needed");
  }
  require(static_cast<std::int64_t>(readout.slate_of_config.size()) == plan.configs,
          "readout.slate_of_config: wrong length");
  for (const std::int32_t slate : readout.slate_of_config) {
    require(slate >= 0 && slate < slates, "readout.slate_of_config: out of range");
  }
}

std::uint64_t csr_bytes(const Csr& csr) {
  return csr.begin.size() * sizeof(csr.begin[0]) + csr.source.size() * sizeof(csr.source[0]) +
         csr.weight.size() * sizeof(csr.weight[0]);
}

std::uint64_t relation_bytes(const Relation& relation) {
  return csr_bytes(relation.in) + csr_bytes(relation.out);
}

std::uint64_t selection_bytes(const Selection& selection) {
  return selection.of.size() * sizeof(selection.of[0]) + csr_bytes(selection.rows);
}

}  // namespace

std::int64_t Plan::total_rows() const {
  std::int64_t rows = first_rows();
  for (const auto& step : steps) rows += step->rows_out;
  return rows;
}

std::uint64_t Plan::bytes() const {
  std::uint64_t bytes = (node.size() + state.size() + readout.slate_of_config.size()) * 4;
  bytes += csr_bytes(rows_of_node) + csr_bytes(rows_of_state);
  for (const Relation* relation : {&readout.cells, &readout.pool, &readout.common}) {
    bytes += relation_bytes(*relation);
  }
  std::set<const Step*> seen;
  for (const auto& step : steps) {
    if (!seen.insert(step.get()).second) continue;
    bytes += selection_bytes(step->self);
    for (const EdgeSet& edges : step->edges) {
      bytes += relation_bytes(edges.sum) + selection_bytes(edges.group);
    }
  }
  return bytes;
}

void check_plan(const Plan& plan) {
  require(plan.node.size() == plan.state.size(), "node and state differ in length");
  check_index(plan.node, 0, plan.nodes, plan.rows_of_node, "node");
  check_index(plan.state, -1, plan.states, plan.rows_of_state, "state");
  require(plan.needed >= 0 && plan.needed <= plan.first_rows(), "needed out of range");
  require(plan.needed_part.size() == plan.steps.size(), "steps and needed parts differ in number");
  std::int64_t rows = plan.first_rows();
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = *plan.steps[i];
    const std::string name = "step " + std::to_string(i);
    require(step.rows_in == rows, name + ": does not take the rows before it");
    require(step.self.identity() != plan.shares_rows(), name + ": shares rows unlike the others");
    check_step(step, name);
    check_needed_part(step, plan.needed_part[i], plan.needed_rows(i), name);
    rows = step.rows_out;
  }
  check_readout(plan, rows);
}

}  // namespace tpudist
