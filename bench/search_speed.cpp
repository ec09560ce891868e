// Distinct configurations a second of processor time: random ones in blocks, as `tpudist predict`
// scores them, and those of a search with and without kept states.
//
//   search_speed MODULE RUN [--evaluations N] [--threads N] [--bytes N]
#include <fmt/format.h>

#include <ctime>
#include <optional>
#include <string>
#include <vector>

#include "core/process.hpp"
#include "core/progress.hpp"
#include "core/thread_pool.hpp"
#include "dist/collectives/communicator.hpp"
#include "models/kernels/cpu_process.hpp"
#include "train/scoring/module_search.hpp"

namespace {

using namespace tpudist;

struct Arguments {
  std::string module, run;
  std::int64_t evaluations = 10'000;
  int threads = usable_cores();
  std::optional<std::uint64_t> bytes;  // of kept states
};

template <typename Body>
double seconds_of(const Body& body) {
  const std::clock_t begin = std::clock();
  body();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

int measure(const Arguments& arguments) {
  ThreadPool pool(arguments.threads, use_one_thread_per_worker);
  const auto world = make_self_communicator();
  NoProgress progress;
  JobContext context{*world, pool, NodeTopology{}, progress};
  std::vector<TrainedRun> runs;
  runs.push_back(open_run(arguments.run));
  const Module module = read_module(arguments.module, runs.front().experiment.data.collection,
                                    scored_reduction({&runs.front()}));
  SearchedModule searched(module, runs, {{}, true}, false, 1, context);
  const ConfigSpace& space = searched.space();
  const auto members = searched.session().members();

  const std::vector<ConfigSpace::Point> drawn = reference_points(space, arguments.evaluations, 2);
  const Module listed = searched.with_configs(drawn);
  ScoringSession session(listed.dataset, context);
  const std::vector<const TrainedRun*> all{&runs.front()};
  const MemberWeights weights = add_runs(session, all);
  const auto predict = [&] { session.score(weights, 0, [](std::vector<ScoresByMember>) {}); };
  predict();
  const double known = seconds_of(predict);
  const double peer = static_cast<double>(drawn.size()) / known;
  fmt::print("{} members, {} groups\n", members, space.groups.size());
  fmt::print("random, in blocks      {:>8} configurations {:>8.3f} s {:>10.0f}/s\n", drawn.size(),
             known, peer);

  SearchOptions options;
  options.evaluations = arguments.evaluations;
  options.any_slate = searched.session().scores_any_slate();
  const auto search = [&](const char* name, std::optional<std::uint64_t> bytes) {
    if (bytes) searched.session().keep_bytes(*bytes);
    SearchResult found;
    const double seconds =
        seconds_of([&] { found = find_configs(space, searched.scorer(0.5), options, context); });
    const double rate = static_cast<double>(found.evaluations) / seconds;
    fmt::print("{:<22} {:>8} configurations {:>8.3f} s {:>10.0f}/s {:>6.2f} x\n", name,
               found.evaluations, seconds, rate, rate / peer);
    return found;
  };
  const SearchResult kept = search("search, kept states", arguments.bytes);
  const SearchResult none = search("search, no states kept", 0);
  bool same = kept.proposals == none.proposals;
  for (std::size_t k = 0; same && k < kept.scores.size(); ++k)
    same = kept.scores[k].estimate == none.scores[k].estimate;
  fmt::print("scores are {}\n", same ? "bit-identical" : "NOT EQUAL");
  return same ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  std::vector<std::string> names;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--evaluations" && i + 1 < argc)
      arguments.evaluations = std::stoll(argv[++i]);
    else if (word == "--threads" && i + 1 < argc)
      arguments.threads = std::stoi(argv[++i]);
    else if (word == "--bytes" && i + 1 < argc)
      arguments.bytes = std::stoull(argv[++i]);
    else
      names.push_back(word);
  }
  if (names.size() != 2) {
    fmt::print(stderr,
               "usage: search_speed MODULE RUN [--evaluations N] [--threads N] [--bytes N]\n");
    return 2;
  }
  arguments.module = names[0];
  arguments.run = names[1];
  try {
    return measure(arguments);
  } catch (const std::exception& error) {
    fmt::print(stderr, "search_speed: {}\n", error.what());
    return 1;
  }
}
