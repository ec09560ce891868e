#include "dist/collectives/mpi_session.hpp"

#include <mpi.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "core/error.hpp"
#include "dist/collectives/mpi_communicator.hpp"

namespace tpudist {
namespace {
std::atomic<bool> session_lives = false;

// Whether mpirun or srun started this process as a rank that finds others by PMIx or PMI.
bool started_by_launcher() {
  constexpr std::array names{"OMPI_COMM_WORLD_SIZE", "PMIX_NAMESPACE", "PMI_SIZE", "PMI_RANK"};
  return std::ranges::any_of(names, [](const char* name) { return std::getenv(name) != nullptr; });
}
}  // namespace

MpiSession::MpiSession(int* argc, char*** argv) {
  if (session_lives.exchange(true)) throw DistError("a second MpiSession at the same time");
  try {
    int initialized = 0;
    check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
    if (initialized) return;
    if (!started_by_launcher()) {
      // A rank that is alone makes Open MPI 4 start a daemon, which takes a third of a second and
      // is not needed. Nor is a session folder: all ranks that are alone share one, and a rank that
      // ends removes the folder while another makes its part of it.
      ::setenv("OMPI_MCA_ess_singleton_isolated", "1", 0);
      ::setenv("OMPI_MCA_orte_create_session_dirs", "0", 0);
    }
    int provided = MPI_THREAD_SINGLE;
    check_mpi(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided), "MPI_Init_thread");
    owns_ = true;
    if (provided < MPI_THREAD_FUNNELED) {
      throw DistError("this MPI does not allow threads beside the one that calls it");
    }
  } catch (...) {
    if (owns_) MPI_Finalize();
    session_lives = false;
    throw;
  }
}

MpiSession::~MpiSession() {
  if (owns_ && MPI_Finalize() != MPI_SUCCESS) spdlog::warn("MPI_Finalize failed");
  session_lives = false;
}

std::unique_ptr<Communicator> MpiSession::world(RankActivity* activity) const {
  MPI_Comm copy = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &copy), "MPI_Comm_dup");
  return std::make_unique<MpiComm>(copy, std::numeric_limits<int>::max(), activity);
}

void MpiSession::abort(int exit_code) {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  if (initialized && !finalized) MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::_Exit(exit_code);
}

// The first line, up to a comma: Open MPI appends who built it, MPICH much more text.
std::string mpi_library() {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  // MPI allows this call before MPI_Init.
  if (MPI_Get_library_version(text.data(), &length) != MPI_SUCCESS) return "unknown";
  const std::string_view all(text.data(), static_cast<std::size_t>(length));
  return std::string(all.substr(0, all.find_first_of(",\n")));
}

bool found_mpi() {
  return !mpi_library().starts_with("none");
}

}  // namespace tpudist
