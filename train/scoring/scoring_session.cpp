#include "train/scoring/scoring_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <utility>

#include "core/aligned.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/mutex.hpp"
#include "data/shards/shard_reader.hpp"
#include "dist/health/agreement.hpp"
#include "train/units/training_setup.hpp"

namespace tpudist {
namespace {

Dataset open_on_all_ranks(const DatasetOptions& options, JobContext& context) {
  std::optional<Dataset> data;
  run_on_all_ranks(context.world, [&] { data.emplace(Dataset::open(options, context.pool)); });
  require_same_graphs(options, &*data, context.world);
  return *std::move(data);
}

}  // namespace

std::string to_text(const MemberName& name) {
  return name.run.empty() ? fmt::format("member {}", name.number)
                          : fmt::format("{} member {}", name.run, name.number);
}

Network make_network(const Experiment& experiment, int device, ThreadPool& pool) {
  return Network(experiment.network, experiment.data.collection.schema, device, pool);
}

bool has_graphs(const DatasetOptions& options) {
  return !list_graphs(options.shards, options.collection, options.split).empty();
}

void require_same_graphs(const DatasetOptions& options, const Dataset* data, Communicator& world) {
  const AgreedValue hash{fmt::format("data of {} {}", options.collection.name, options.split),
                         data ? to_hex(data->selection_hash()) : "none"};
  require_agreement(world, std::span(&hash, 1),
                    "give all ranks the same shards (data.shards, --data)");
  if (data) require_same_segments(*data, world);
}

std::optional<Dataset> open_for_costs(DatasetOptions options, ThreadPool& pool) {
  if (!has_graphs(options)) return std::nullopt;
  options.cache = CacheMode::stream;
  options.node_cache = {};
  return Dataset::open(options, pool);
}

// The members of one network.
class ScoringSession::Scorer {
 public:
  Scorer(const Experiment& experiment, const Network& network, const Dataset& data,
         ThreadPool& pool)
      : name_(experiment.name),
        network_(network),
        members_(static_cast<std::size_t>(experiment.ensemble.members)),
        block_(experiment.evaluate_block),
        data_(data),
        units_(data, network, experiment.plan) {
    units_.share_graphs(false, pool);
    units_.fix_order();
  }

  // The flags of these members begin at `by[first]`. Members without a flag get no scores.
  std::vector<ScoresByMember> score(GraphRange graphs, std::span<const float> weights,
                                    const ScoringMembers& by, std::size_t first,
                                    std::int64_t most_rows, std::uint64_t draw,
                                    JobContext& context) const {
    const auto flags = [&](int graph) {
      if (by.empty()) return std::vector<bool>(members_, true);
      const auto begin = by[graph].begin() + static_cast<int>(first);
      return std::vector<bool>(begin, begin + static_cast<int>(members_));
    };
    std::vector<ScoresByMember> scored;
    const int end = graphs.first + graphs.count;
    for (int g = graphs.first, next = g; g < end; g = next) {
      const std::vector<bool> who = flags(g);
      while (next < end && flags(next) == who) ++next;
      std::ranges::move(score_by({g, next - g}, weights, who, {block_, most_rows, draw}, context),
                        std::back_inserter(scored));
    }
    return scored;
  }

  std::size_t members() const { return members_; }

  void require_scores_of_configs() const {
    if (network_.config().mixes_configs())
      throw ConfigError(fmt::format(
          "{}: a network with a layer across configurations scores a configuration only together "
          "with others; use runs without such a layer",
          name_));
  }

  // `bytes`: for the rows that one thread keeps.
  std::vector<std::vector<double>> score_slate(std::span<const float> weights, const Slate& slate,
                                               std::uint64_t bytes) const {
    const auto members = static_cast<int>(members_);
    ScoringOptions options{block_};
    const Parameters parameters = placed(weights);
    if (!scores_any_slate() || bytes < least_bytes(slate))
      return tpudist::score_slate(network_, parameters, members, units_, slate, options);
    std::unique_ptr<KeptRows> kept = take_kept(slate.graph);
    if (!kept) kept = std::make_unique<KeptRows>(network_.kept_channels(), members, bytes);
    options.kept = kept.get();
    auto scores = tpudist::score_slate(network_, parameters, members, units_, slate, options);
    const MutexLock lock(mutex_);
    kept_[slate.graph].push_back(std::move(kept));
    return scores;
  }
  bool scores_any_slate() const { return units_.fixes_order(); }
  // An upper bound of the rows of two configurations. With less memory a thread forgets its rows at
  // nearly each slate, and is faster without them.
  std::uint64_t least_bytes(const Slate& slate) const {
    const std::vector<std::int64_t> channels = network_.kept_channels();
    const std::int64_t nodes = units_.nodes(slate);
    const std::int64_t floats = nodes * std::reduce(channels.begin(), channels.end());
    return 2 * (RowContents::bytes(network_.plan_shape(), nodes) +
                static_cast<std::uint64_t>(floats) * members_ * sizeof(float));
  }
  void forget_kept() const {
    const MutexLock lock(mutex_);
    kept_.clear();
    placed_.reset();
  }

  ScoringCost cost(int members, std::int64_t most_rows, ThreadPool& pool) const {
    return scoring_cost(units_, data_, members, most_rows, block_, pool);
  }

 private:
  std::vector<ScoresByMember> score_by(GraphRange graphs, std::span<const float> weights,
                                       const std::vector<bool>& who, const ScoringOptions& options,
                                       JobContext& context) const {
    const auto count = static_cast<int>(std::ranges::count(who, true));
    const auto score = [&](std::span<const float> flat) {
      return score_graphs(network_, flat, count, data_, graphs, units_, options, context);
    };
    if (count == static_cast<int>(members_)) return score(weights);
    std::vector<ScoresByMember> scored;
    if (count == 0) {
      for (int g = graphs.first; g < graphs.first + graphs.count; ++g)
        scored.push_back({g, choose_rows(data_, g, options.most_rows), {}});
    } else {
      const std::size_t length = weights.size() / members_;
      AlignedFloats some;
      for (std::size_t m = 0; m < members_; ++m) {
        const auto own = weights.subspan(m * length, length);
        if (who[m]) some.insert(some.end(), own.begin(), own.end());
      }
      scored = score(some);
    }
    for (ScoresByMember& graph : scored) {
      std::vector<std::vector<double>> all(members_);
      std::size_t next = 0;
      for (std::size_t m = 0; m < members_; ++m) {
        if (who[m]) all[m] = std::move(graph.scores[next++]);
      }
      graph.scores = std::move(all);
    }
    return scored;
  }

  // The weights of a slate, which a device copies once.
  Parameters placed(std::span<const float> weights) const {
    const MutexLock lock(mutex_);
    if (!placed_ || placed_->flat.data() != weights.data()) placed_ = network_.place(weights);
    return *placed_;
  }

  // Kept rows that no call uses; null if there are none.
  std::unique_ptr<KeptRows> take_kept(int graph) const {
    const MutexLock lock(mutex_);
    auto& free = kept_[graph];
    if (free.empty()) return nullptr;
    std::unique_ptr<KeptRows> taken = std::move(free.back());
    free.pop_back();
    return taken;
  }

  const std::string name_;
  const Network& network_;
  const std::size_t members_;
  const ScoringBlock block_;
  const Dataset& data_;
  UnitBuilder units_;
  mutable Mutex mutex_;
  mutable std::optional<Parameters> placed_ TPUDIST_GUARDED_BY(mutex_);
  mutable std::map<int, std::vector<std::unique_ptr<KeptRows>>> kept_
      TPUDIST_GUARDED_BY(mutex_);  // of each graph
};

ScoringSession::ScoringSession(const DatasetOptions& options, JobContext& context)
    : own_(open_on_all_ranks(options, context)), data_(*own_), context_(context) {}

ScoringSession::ScoringSession(const Dataset& data, JobContext& context)
    : data_(data), context_(context) {}

ScoringSession::~ScoringSession() = default;

void ScoringSession::add(const Experiment& experiment, const Network& network,
                         const std::string& run) {
  const FeatureSchema& schema = data_.options().collection.schema;
  if (network.schema() != schema)
    throw ConfigError(fmt::format("the network of {} is for graphs with {}; these have {}",
                                  experiment.name, to_text(network.schema()), to_text(schema)));
  scorers_.push_back(std::make_unique<const Scorer>(experiment, network, data_, context_.pool));
  slates_.insert(slates_.end(), scorers_.back()->members(), experiment.evaluate_block.slates);
  for (int m = 0; m < experiment.ensemble.members; ++m)
    names_.push_back({run, experiment.ensemble.number_of(m)});
}

void ScoringSession::add(const Experiment& experiment, const std::string& run) {
  networks_.push_back(std::unique_ptr<const Network>(
      new Network(make_network(experiment, context_.topology.device, context_.pool))));
  add(experiment, *networks_.back(), run);
}

std::vector<std::int64_t> ScoringSession::scores_of_graphs(std::int64_t most_rows) const {
  std::vector<std::int64_t> scores;
  for (int g = 0; g < data_.size(); ++g) {
    const std::int64_t own = by_.empty() ? members() : std::ranges::count(by_[g], true);
    scores.push_back(own * scored_rows(data_, g, most_rows));
  }
  return scores;
}

std::int64_t ScoringSession::scores(std::int64_t most_rows) const {
  const std::vector<std::int64_t> scores = scores_of_graphs(most_rows);
  return std::accumulate(scores.begin(), scores.end(), std::int64_t{0});
}

bool ScoringSession::score(const MemberWeights& weights, std::int64_t most_rows, const Take& take,
                           const std::function<bool()>& stops, std::uint64_t draw) const {
  // Memory holds one score per permutation at a time.
  std::int64_t permutations = 1;
  for (const ScoringSlates& slates : slates())
    permutations = std::max<std::int64_t>(permutations, slates.permutations);
  std::vector<std::int64_t> held = scores_of_graphs(most_rows);
  for (std::int64_t& scores : held) scores *= permutations;
  for (const GraphRange graphs : scoring_ranges(held)) {
    if (stops && stops()) return false;
    std::vector<ScoresByMember> all;
    std::size_t first = 0;
    for (std::size_t s = 0; s < scorers_.size(); ++s) {
      auto own = scorers_[s]->score(graphs, weights[s], by_, first, most_rows, draw, context_);
      first += scorers_[s]->members();
      if (s == 0) {
        all = std::move(own);
        continue;
      }
      for (std::size_t g = 0; g < all.size(); ++g)
        std::ranges::move(own[g].scores, std::back_inserter(all[g].scores));
    }
    take(std::move(all));
  }
  return true;
}

void ScoringSession::require_scores_of_configs() const {
  for (const auto& scorer : scorers_) scorer->require_scores_of_configs();
}

std::vector<std::vector<double>> ScoringSession::score_slate(const MemberWeights& weights,
                                                             const Slate& slate) const {
  std::vector<std::vector<double>> all;
  const std::uint64_t bytes =
      kept_bytes_ / (scorers_.size() * static_cast<std::uint64_t>(context_.pool.threads()));
  for (std::size_t s = 0; s < scorers_.size(); ++s)
    std::ranges::move(scorers_[s]->score_slate(weights[s], slate, bytes), std::back_inserter(all));
  return all;
}

bool ScoringSession::scores_any_slate() const {
  return std::ranges::all_of(scorers_, [](const auto& own) { return own->scores_any_slate(); });
}

void ScoringSession::keep_bytes(std::uint64_t bytes) {
  kept_bytes_ = bytes;
  for (const auto& scorer : scorers_) scorer->forget_kept();
}

ScoringCost ScoringSession::cost(int members, std::int64_t most_rows) const {
  return scorers_.front()->cost(members, most_rows, context_.pool);
}

}  // namespace tpudist
