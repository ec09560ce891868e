#include "data/loading/metis_segments.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <stdexcept>
#include <utility>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"

#ifdef TPUDIST_METIS
#include <fmt/format.h>
#include <metis.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <string>
#endif

namespace tpudist {

#ifdef TPUDIST_METIS
namespace {

using Parts = std::vector<std::vector<std::int32_t>>;  // nodes, ascending

// METIS makes parts that are up to 3 % larger than the mean.
constexpr std::int64_t kPercent = 103;

// Both directions of each edge once, sorted by the first node, without self loops.
std::vector<std::pair<std::int32_t, std::int32_t>> undirected(std::span<const std::int32_t> edges) {
  std::vector<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::size_t e = 0; e < edges.size(); e += 2) {
    if (edges[e] == edges[e + 1]) continue;
    pairs.emplace_back(edges[e], edges[e + 1]);
    pairs.emplace_back(edges[e + 1], edges[e]);
  }
  std::ranges::sort(pairs);
  const auto doubles = std::ranges::unique(pairs);
  pairs.erase(doubles.begin(), doubles.end());
  return pairs;
}

struct Adjacency {
  std::vector<idx_t> begin{0}, neighbours;  // [n + 1], [2 m]
};

// How often a child is started until METIS ends in it.
constexpr int kTries = 5;
constexpr unsigned kMostSeconds = 600;  // of a try

// The work of the child: METIS_PartGraphKway. Writes its status and parts to `status` and `parts`
// [n], in memory shared with the parent.
[[noreturn]] void cut_in_child(pid_t parent, Adjacency& graph, std::int64_t count, idx_t& status,
                               idx_t* parts) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // the parent has ended
  for (int signal = 1; signal < NSIG; ++signal) std::signal(signal, SIG_DFL);
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : {SIGALRM, SIGTERM, SIGABRT}) sigdelset(&blocked, signal);
  ::pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  ::close(STDOUT_FILENO);  // so that the parent's buffered output is not written twice
  ::close(STDERR_FILENO);
  // A lock of rand(), or of an allocator other than glibc's, may be held for ever.
  ::alarm(1);
  std::rand();
  ::alarm(kMostSeconds);
  idx_t vertices = static_cast<idx_t>(graph.begin.size() - 1), constraints = 1,
        wanted = static_cast<idx_t>(count), cut = 0;
  idx_t options[METIS_NOPTIONS];
  METIS_SetDefaultOptions(options);
  options[METIS_OPTION_SEED] = 1;
  status = METIS_PartGraphKway(&vertices, &constraints, graph.begin.data(), graph.neighbours.data(),
                               nullptr, nullptr, nullptr, &wanted, nullptr, nullptr, options, &cut,
                               parts);
  ::_exit(0);
}

// [n] the part of each node. METIS runs in a child process, since METIS replaces the process'
// handlers of SIGTERM and SIGABRT meanwhile, jumps out of them, draws with rand() and may print.
// The child ends with its parent. A signal to the whole group may end the child early, so there are
// several tries.
std::vector<idx_t> parts_by_metis(const std::string& name, Adjacency graph, std::int64_t count) {
  const std::size_t nodes = graph.begin.size() - 1, bytes = (nodes + 1) * sizeof(idx_t);
  const auto failed = [&](const std::string& why) {
    return Error(ErrorKind::failed,
                 fmt::format("{}: METIS {} on its {} nodes: give data.segments.by=consecutive, or "
                             "more data.segments.nodes",
                             name, why, nodes));
  };
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw failed(fmt::format("got no memory ({})", std::strerror(errno)));
  const auto unmap = [bytes](idx_t* at) { ::munmap(at, bytes); };
  const std::unique_ptr<idx_t, decltype(unmap)> shared(static_cast<idx_t*>(memory), unmap);
  idx_t& status = *shared;  // 0 until METIS has returned
  int ended = 0;
  for (int i = 0; i < kTries && status != METIS_OK; ++i) {
    status = 0;
    const pid_t parent = ::getpid();
    sigset_t all, before;  // the child must not run the parent's handlers
    sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    const pid_t child = ::fork();
    if (child == 0) cut_in_child(parent, graph, count, status, shared.get() + 1);
    const int error = errno;
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (child < 0)
      throw Error(
          ErrorKind::failed,
          fmt::format("{}: no child process for METIS ({}): raise the limit on processes or "
                      "memory, or give data.segments.by=consecutive",
                      name, std::strerror(error)));
    // If other code also waited for the child (ECHILD), `status` alone gives the result.
    while (::waitpid(child, &ended, 0) < 0 && errno == EINTR) {
    }
  }
  if (status == 0 && WIFSIGNALED(ended))
    throw failed(
        fmt::format("was ended by signal {} ({})", WTERMSIG(ended), ::strsignal(WTERMSIG(ended))));
  if (status != METIS_OK) throw failed(fmt::format("failed with {}", status));
  return {shared.get() + 1, shared.get() + 1 + nodes};
}

// Does not ask METIS for one part, which would end the process, or without edges, which fails.
Parts partition(const Graph& graph, std::int64_t count) {
  const std::int64_t nodes = graph.nodes;
  const auto pairs = undirected(graph.edge_index);
  Parts parts(static_cast<std::size_t>(count));
  if (count == 1 || pairs.empty()) {
    for (std::int64_t node = 0; node < nodes; ++node)
      parts[node * count / nodes].push_back(static_cast<std::int32_t>(node));
    return parts;
  }
  Adjacency adjacency;
  std::vector<idx_t>& neighbours = adjacency.neighbours;
  for (std::int64_t node = 0; node < nodes; ++node) {
    while (neighbours.size() < pairs.size() && pairs[neighbours.size()].first == node)
      neighbours.push_back(pairs[neighbours.size()].second);
    adjacency.begin.push_back(static_cast<idx_t>(neighbours.size()));
  }
  const std::vector<idx_t> part = parts_by_metis(graph.name, std::move(adjacency), count);
  for (std::size_t node = 0; node < part.size(); ++node)
    parts[part[node]].push_back(static_cast<std::int32_t>(node));
  return parts;
}

}  // namespace

bool has_metis() {
  return true;
}

std::vector<std::int32_t> metis_segments(const Graph& graph, std::int64_t most_nodes) {
  const std::int64_t nodes = graph.nodes;
  const std::int64_t count =
      nodes <= most_nodes
          ? 1
          : std::min((nodes * kPercent + 100 * most_nodes - 1) / (100 * most_nodes), nodes);
  std::vector<std::int32_t> segment(static_cast<std::size_t>(nodes), 0);
  std::int32_t next = 0;
  for (const std::vector<std::int32_t>& part : partition(graph, count)) {
    const auto size = std::ssize(part);
    std::int64_t pieces = 1;
    while (size > pieces * most_nodes) pieces *= 2;
    for (std::int64_t i = 0; i < pieces; ++i) {
      const std::int64_t first = size * i / pieces, end = size * (i + 1) / pieces;
      for (std::int64_t at = first; at < end; ++at) segment[part[at]] = next;
      next += first < end;
    }
  }
  return segment;
}

#else

bool has_metis() {
  return false;
}

std::vector<std::int32_t> metis_segments(const Graph&, std::int64_t) {
  throw std::logic_error("built without METIS");
}

#endif

std::optional<std::uint64_t> metis_hash(const GraphReduction& reduction) {
  if (reduction.segments != SegmentCut::metis) return std::nullopt;
  static const std::uint64_t hash = [] {
    CounterRng random(1);
    std::vector<std::int32_t> edges;
    for (std::int32_t node = 1; node < 1000; ++node)
      edges.insert(
          edges.end(),
          {node, static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(node)))});
    Graph graph;
    graph.name = "a random tree";
    graph.nodes = std::ssize(edges) / 2 + 1;
    graph.edge_index = std::move(edges);
    const std::vector<std::int32_t> segments = metis_segments(graph, 50);
    return hash64(std::as_bytes(std::span(segments)));
  }();
  return hash;
}

}  // namespace tpudist
