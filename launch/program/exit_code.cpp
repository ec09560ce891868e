#include "launch/program/exit_code.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <initializer_list>
#include <new>
#include <string_view>

#include "core/error.hpp"
#include "launch/program/output.hpp"

namespace tpudist {
namespace {

constexpr std::string_view kLessMemory =
    "lower batch.configs, batch.config_chunk, batch.member_chunk, data.cache_bytes, "
    "evaluate.block_rows or evaluate.plan_floats, set train.recompute=true, or start fewer "
    "ranks on this machine";

// LibTorch's words for the host (c10/core/impl/alloc_cpu.cpp) and for a GPU, and CUDA's own.
bool lacks_memory(std::string_view message) {
  for (const std::string_view words :
       {"can't allocate memory", "not enough memory", "out of memory"})
    if (message.find(words) != std::string_view::npos) return true;
  return false;
}

// The number in the first of these variables that is set.
int from_environment(std::initializer_list<const char*> names, int fallback) {
  for (const char* name : names)
    if (const char* value = std::getenv(name)) return std::atoi(value);
  return fallback;
}

}  // namespace

Failure describe_failure(const std::exception& error) {
  if (const auto* own = dynamic_cast<const Error*>(&error)) return {own->what(), own->exit_code()};
  const int code = static_cast<int>(ErrorKind::failed);
  if (dynamic_cast<const std::bad_alloc*>(&error))
    return {fmt::format("out of memory; {}", kLessMemory), code};
  const std::string_view text = error.what();
  const std::string_view first = text.substr(0, text.find('\n'));
  if (lacks_memory(first)) return {fmt::format("out of memory ({}); {}", first, kLessMemory), code};
  return {std::string(first), code};
}

int launched_rank() {
  return from_environment({"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}, 0);
}

int launched_ranks() {
  return from_environment({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"}, 1);
}

int print_failure(const Failure& failure) {
  const std::string place = launched_ranks() > 1 ? fmt::format(" (rank {})", launched_rank()) : "";
  print_error_text(fmt::format("tpudist: error{}: {}\n", place, failure.message));
  return failure.exit_code;
}

void print_uncaught_errors() {
  std::set_terminate([] {
    const std::exception_ptr error = std::current_exception();
    if (!error) std::abort();
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& uncaught) {
      std::_Exit(print_failure(describe_failure(uncaught)));
    } catch (...) {
      std::abort();
    }
  });
}

}  // namespace tpudist
