#include "core/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>

#include "core/error.hpp"
#include "core/mutex.hpp"

namespace tpudist {
namespace {

// Global variables, because a signal handler cannot find mappings in another way.
struct Mapping {
  std::atomic<bool> used = false;
  std::atomic<std::size_t> begin = 0, end = 0;  // addresses; 0: none
};
std::array<Mapping, 2048> mappings;  // `convert --jobs` takes up to 1024, each maps a file
Mutex handler_mutex;
struct sigaction previous_action TPUDIST_GUARDED_BY(handler_mutex);

// Puts zeros in place of the rest of a mapping whose file has become shorter. The previous handler
// gets any other fault when the access repeats. A signal handler can take no mutex.
TPUDIST_UNCHECKED void on_bus_error(int signal, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::size_t>(info->si_addr);
  for (const Mapping& mapping : mappings) {
    const std::size_t begin = mapping.begin, end = mapping.end;
    const bool own = info->si_code > 0 && address >= begin && address < end;
    if (!own || mapping.begin != begin) continue;  // by now of another file
    const std::size_t page = address - address % static_cast<std::size_t>(::getpagesize());
    void* const zeros = ::mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) break;
    errno = error;
    return;
  }
  ::sigaction(signal, &previous_action, nullptr);
  if (info->si_code <= 0) ::raise(signal);  // sent by a process: send it again
  errno = error;
}

// Other libraries may have set their own handler since.
void listen_to_bus_errors() {
  const MutexLock lock(handler_mutex);
  struct sigaction current {};
  ::sigaction(SIGBUS, nullptr, &current);
  if ((current.sa_flags & SA_SIGINFO) && current.sa_sigaction == on_bus_error) return;
  previous_action = current;
  struct sigaction action {};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGBUS, &action, nullptr);
}

void add(std::size_t begin, std::size_t bytes, const std::filesystem::path& path) {
  listen_to_bus_errors();
  for (Mapping& mapping : mappings) {
    if (mapping.used.exchange(true)) continue;
    mapping.begin = begin;
    mapping.end = begin + bytes;  // from here on the handler sees it
    return;
  }
  throw IoError(fmt::format("{}: more than {} files are mapped", path.string(), mappings.size()));
}

void remove(std::size_t begin) {
  for (Mapping& mapping : mappings) {
    if (!mapping.used || mapping.begin != begin) continue;
    mapping.end = 0;
    mapping.begin = 0;
    mapping.used = false;
    return;
  }
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path)
    : path_(path), file_(open_file(path, O_RDONLY | O_NONBLOCK)) {  // a FIFO
  struct stat status {};
  check_posix(::fstat(file_.get(), &status), "read", path);
  if (status.st_size == 0 || !S_ISREG(status.st_mode))
    throw DataError(fmt::format("{}: is empty or no regular file", path.string()));
  bytes_ = static_cast<std::size_t>(status.st_size);
  written_ = status.st_mtim;
  void* const begin = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file_.get(), 0);
  if (begin == MAP_FAILED) throw_io_error("map", path, errno);
  begin_ = static_cast<const char*>(begin);
  try {
    add(reinterpret_cast<std::size_t>(begin), bytes_, path);
  } catch (...) {
    ::munmap(begin, bytes_);
    throw;
  }
}

MappedFile::~MappedFile() {
  remove(reinterpret_cast<std::size_t>(begin_));
  ::munmap(const_cast<char*>(begin_), bytes_);
}

void MappedFile::require_unchanged() const {
  struct stat status {};
  check_posix(::fstat(file_.get(), &status), "read", path_);
  if (static_cast<std::size_t>(status.st_size) == bytes_ &&
      status.st_mtim.tv_sec == written_.tv_sec && status.st_mtim.tv_nsec == written_.tv_nsec)
    return;
  throw DataError(fmt::format("{}: was written while it was read; try again when it is complete",
                              path_.string()));
}

}  // namespace tpudist
