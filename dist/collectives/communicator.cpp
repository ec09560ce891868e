#include "dist/collectives/communicator.hpp"

#include <fmt/format.h>

#include <cstring>
#include <exception>

#include "core/error.hpp"
#include "dist/collectives/counts.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/error_exchange.hpp"

namespace tpudist {
namespace {

void require_host(const Communicator& communicator, std::string_view call) {
  if (communicator.memory() == MemoryKind::host) return;
  throw DistError(
      fmt::format("{} needs a communicator over host memory, not '{}'", call, communicator.name()));
}

// The error as it is sent: its kind as the first character, and its message.
std::string encode(const std::exception_ptr& error) {
  const auto text = [](ErrorKind kind, const char* message) {
    return static_cast<char>(kind) + std::string(message);
  };
  try {
    std::rethrow_exception(error);
  } catch (const Error& caught) {
    return text(caught.kind(), caught.what());
  } catch (const std::exception& caught) {
    return text(ErrorKind::failed, caught.what());
  } catch (...) {
    return text(ErrorKind::failed, "an exception of unknown type");
  }
}

// The copy of another rank's error.
template <typename E>
class Heard : public E, public HeardFromOtherRank {
 public:
  using E::E;
};

[[noreturn]] void throw_as(ErrorKind kind, const std::string& message) {
  switch (kind) {
    case ErrorKind::usage:
      throw Heard<ConfigError>(message);
    case ErrorKind::data:
      throw Heard<DataError>(message);
    case ErrorKind::stopped:
      throw Heard<Error>(kind, message);
    case ErrorKind::failed:
      break;
  }
  throw Heard<DistError>(message);
}

class SelfComm final : public Communicator {
 public:
  explicit SelfComm(MemoryKind memory) : memory_(memory) {}

  int rank() const override { return 0; }
  int size() const override { return 1; }
  MemoryKind memory() const override { return memory_; }
  std::string_view name() const override { return "self"; }

  void barrier() override {}
  void all_reduce(Numbers, ReduceOp) override {}
  std::unique_ptr<Communicator> split(int color) override {
    check_color(color);
    return std::make_unique<SelfComm>(memory_);
  }

 private:
  void broadcast_bytes(std::span<std::byte>, int root) override { check_root(root, 1); }

  void all_to_all_bytes(std::span<const std::byte> send, std::span<const std::int64_t> send_counts,
                        std::span<std::byte> recv, std::span<const std::int64_t> recv_counts,
                        std::int64_t element_bytes) override {
    if (exchange_of(send, send_counts, recv, recv_counts, element_bytes, 0, 1).copies_own) {
      copy(send, recv);
    }
  }

  void all_gather_bytes(std::span<const std::byte> send, std::span<std::byte> recv,
                        std::span<const std::int64_t> counts, std::int64_t element_bytes) override {
    gather_parts_of(send, recv, counts, element_bytes, 0, 1);
    copy(send, recv);
  }

  void copy(std::span<const std::byte> from, std::span<std::byte> to) const {
    if (from.empty() || from.data() == to.data()) return;
    if (memory_ == MemoryKind::host) {
      std::memcpy(to.data(), from.data(), from.size());
    } else {
      copy_device_bytes(to.data(), from.data(), from.size());
    }
  }

  MemoryKind memory_;
};

}  // namespace

std::vector<std::string> all_gather_text(Communicator& communicator, std::string_view text) {
  require_host(communicator, "all_gather_text");
  std::vector<std::int64_t> counts;
  const std::vector<char> all =
      all_gather_variable(communicator, std::span<const char>(text.data(), text.size()), &counts);
  std::vector<std::string> texts;
  auto begin = all.begin();
  for (const std::int64_t count : counts) {
    texts.emplace_back(begin, begin + count);
    begin += count;
  }
  return texts;
}

void run_on_all_ranks(Communicator& communicator, const std::function<void()>& action) {
  require_host(communicator, "run_on_all_ranks");
  std::exception_ptr error;
  try {
    action();
  } catch (...) {
    error = std::current_exception();
  }
  std::int64_t failures = error ? 1 : 0;
  communicator.all_reduce(std::span(&failures, 1), ReduceOp::sum);
  if (failures == 0) return;

  // Ranks without an error send nothing.
  const std::vector<std::string> all = all_gather_text(communicator, error ? encode(error) : "");
  if (error) std::rethrow_exception(error);
  std::size_t first = 0;
  while (all[first].empty()) ++first;
  const std::string more = failures > 1 ? fmt::format(" ({} ranks failed)", failures) : "";
  throw_as(static_cast<ErrorKind>(all[first][0]),
           fmt::format("rank {}{}: {}", first, more, all[first].substr(1)));
}

void run_on_first_rank(Communicator& communicator, const std::function<void()>& action) {
  run_on_all_ranks(communicator, [&] {
    if (communicator.rank() == 0) action();
  });
}

std::unique_ptr<Communicator> make_self_communicator(MemoryKind memory) {
  return std::make_unique<SelfComm>(memory);
}

}  // namespace tpudist
