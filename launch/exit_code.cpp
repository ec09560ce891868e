#include "launch/exit_code.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string_view>
#include <thread>

#include "core/error.hpp"

namespace tpudist {
namespace {

// Rank 0 tells first.
constexpr std::chrono::milliseconds kOthersWait{1000};

constexpr std::string_view kLessMemory =
    "lower batch.configs, batch.config_chunk, batch.member_chunk, data.cache_bytes or "
    "evaluate.block_rows, set train.recompute=true, or start fewer ranks on this machine";

// LibTorch's words for the host (c10/core/impl/alloc_cpu.cpp) and for a GPU, and CUDA's own.
bool lacks_memory(std::string_view message) {
  for (const std::string_view words :
       {"can't allocate memory", "not enough memory", "out of memory"}) {
    if (message.find(words) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Failure describe_failure(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return {own->what(), own->exit_code()};
  const int code = static_cast<int>(ErrorKind::failed);
  if (dynamic_cast<const std::bad_alloc*>(&error)) {
    return {fmt::format("out of memory; {}", kLessMemory), code};
  }
  const std::string_view text = error.what();
  const std::string_view first = text.substr(0, text.find('\n'));
  if (lacks_memory(first)) {
    return {fmt::format("out of memory ({}); {}", first, kLessMemory), code};
  }
  return {std::string(first), code};
}

int launched_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "SLURM_PROCID"}) {
    if (const char* value = std::getenv(name)) return std::atoi(value);
  }
  return 0;
}

void print_failure(const Failure& failure, std::optional<int> rank) {
  if (rank.value_or(0) != 0) std::this_thread::sleep_for(kOthersWait);
  const std::string place = rank ? fmt::format(" (rank {})", *rank) : "";
  fmt::print(stderr, "tpudist: error{}: {}\n", place, failure.message);
  std::fflush(stderr);
}

int run_command_line(CLI::App& app, const std::function<void()>& body) {
  const int rank = launched_rank();
  const auto fail = [rank](const Failure& failure) {
    print_failure(failure, rank == 0 ? std::nullopt : std::optional(rank));
    return failure.exit_code;
  };
  const int wrong_usage = static_cast<int>(ErrorKind::usage);
  try {
    body();
  } catch (const CLI::RuntimeError& ended) {  // a command that says its exit code
    return ended.get_exit_code();
  } catch (const CLI::ParseError& error) {  // also --help and --version, with code 0
    if (rank == 0) return app.exit(error) == 0 ? 0 : wrong_usage;
    return error.get_exit_code() == 0 ? 0 : fail({error.what(), wrong_usage});
  } catch (const std::exception& error) {
    return fail(describe_failure(error));
  }
  return 0;
}

}  // namespace tpudist
