#include "dist/doctor/doctor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <mpi.h>
#include <sched.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "core/descriptor.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "dist/collectives/device_memory.hpp"
#include "dist/collectives/mpi_session.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;

// Files of /proc have no size. Empty where there is no such file.
std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &set)) cores.push_back(core);
  }
  return cores;
}

std::string mpi_threads() {
  int level = MPI_THREAD_SINGLE;
  if (MPI_Query_thread(&level) != MPI_SUCCESS) return "unknown";
  if (level == MPI_THREAD_SINGLE) return "single";
  if (level == MPI_THREAD_FUNNELED) return "funneled";
  if (level == MPI_THREAD_SERIALIZED) return "serialized";
  return "multiple";
}

// The daemons of a job ask each other whether they are alive (oob_tcp_keepalive_*, defaults of Open MPI 4.1).
int mpirun_patience() {
  if (!std::getenv("OMPI_COMM_WORLD_SIZE") || !mpi_library().starts_with("Open MPI v4")) return 0;
  const char* home = std::getenv("HOME");
  const fs::path files[] = {fs::path(home ? home : "/") / ".openmpi/mca-params.conf",
                            "/etc/openmpi/openmpi-mca-params.conf"};
  const int idle = mca_parameter("oob_tcp_keepalive_time", files, 300);
  return idle <= 0 ? -1
                   : idle + mca_parameter("oob_tcp_keepalive_intvl", files, 20) *
                                mca_parameter("oob_tcp_keepalive_probes", files, 9);
}

}  // namespace

int mca_parameter(const std::string& name, std::span<const fs::path> files, int otherwise) {
  if (const char* value = std::getenv(("OMPI_MCA_" + name).c_str())) return std::atoi(value);
  for (const fs::path& file : files) {
    for (const std::string& line : split(text_of(file), '\n')) {
      const std::size_t equals = line.find('=');
      if (equals == std::string::npos || trim(std::string_view(line).substr(0, equals)) != name) continue;
      return std::atoi(line.c_str() + equals + 1);
    }
  }
  return otherwise;
}

std::vector<std::string> loaded_libraries(std::string_view maps, std::string_view name) {
  std::set<std::string> files;
  for (const std::string& line : split(maps, '\n')) {
    const std::size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    const std::string file = line.substr(slash);
    if (file.substr(file.rfind('/') + 1).starts_with(name)) files.insert(file);
  }
  return {files.begin(), files.end()};
}

FolderFacts try_folder(const fs::path& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error).lexically_normal();
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  FolderFacts facts;
  facts.path = there.string();
  const fs::space_info space = fs::space(there, error);
  if (!error) facts.free_bytes = static_cast<std::int64_t>(space.available);
  const fs::path file = there / fmt::format(".tpudist-doctor-{}", getpid());
  const Descriptor opened(open(file.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
  facts.writable = opened && write(opened.get(), "x", 1) == 1;
  if (!facts.writable) facts.problem = std::strerror(errno);
  if (!opened) return facts;
  facts.locks = flock(opened.get(), LOCK_EX | LOCK_NB) == 0;
  fs::remove(file, error);
  return facts;
}

RankFacts find_surroundings() {
  RankFacts facts;
  facts.host = host_name();
  facts.process = getpid();
  facts.cores = allowed_cores();
  facts.machine_cores = static_cast<int>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  facts.machine_memory = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
  facts.memory_limit = static_cast<std::int64_t>(memory_limit());
  facts.cpu_quota = cpu_quota();
  for (Device& device : visible_devices().devices) facts.gpus.push_back(std::move(device.id));
  facts.nccl_libraries = loaded_libraries(text_of("/proc/self/maps"), "libnccl.so");
  facts.mpi_threads = mpi_threads();
  const char* tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  if (tasks) facts.srun_tasks = std::atoi(tasks);
  facts.mpirun_patience = mpirun_patience();
  return facts;
}

}  // namespace tpudist
