// What bench/nccl_check.cpp needs to run on fake GPUs, each rank a process of its own. Its beginning
// and its end are tpudist's (launch/program/job.hpp): MPI, the watchdog and the exchange of errors are
// real.
//
// TPUDIST_FAULT="KIND RANK FUNCTION NTH": the NTH call of FUNCTION on that rank meets the fault. KIND:
// error, lost, async_error or stuck.
// TPUDIST_CARD=one: the devices of all ranks are one GPU; instances: parts of one.

#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "launch/program/build_info.hpp"
#include "launch/program/exit_code.hpp"
#include "models/kernels/cpu_process.hpp"
#include "models/network/network.hpp"
#include "tests/dist/fake_cuda/fake_device.hpp"

namespace tpudist {

// Stand in for libraries that are not linked.
bool runs_on_gpus() {
  return true;
}
std::string cpu_kernels(Precision) {
  return "none";
}
std::string source_commit() {
  return "unknown";
}
void use_one_thread_per_worker() {}

namespace fake {
namespace {

Fault fault_of_environment() {
  const char* const text = std::getenv("TPUDIST_FAULT");
  if (!text) return {};
  const std::map<std::string, Fault::Kind> kinds{{"error", Fault::Kind::error},
                                                 {"lost", Fault::Kind::lost},
                                                 {"async_error", Fault::Kind::async_error},
                                                 {"stuck", Fault::Kind::stuck}};
  std::istringstream words(text);
  std::string kind;
  Fault fault;
  words >> kind >> fault.rank >> fault.function >> fault.call;
  fault.kind = kinds.at(kind);
  return fault;
}

// The main thread is the rank.
[[maybe_unused]] const bool begun = [] {
  const char* const text = std::getenv("TPUDIST_CARD");
  const std::string card = text ? text : "";
  static Job own({.ranks = launched_ranks(),
                  .fault = fault_of_environment(),
                  .processes = true,
                  .card = card == "one"         ? JobOptions::Card::one
                          : card == "instances" ? JobOptions::Card::instances
                                                : JobOptions::Card::none});
  job = &own;
  rank = &own.ranks[launched_rank()];
  return true;
}();

}  // namespace
}  // namespace fake
}  // namespace tpudist
