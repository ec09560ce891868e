#include "tests/launch/mpi_program.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace tpudist::test {
namespace {

std::string command_line(const std::vector<RankStart>& starts) {
  std::string command =
      "exec env OMP_NUM_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_btl_vader_single_copy_mechanism=none timeout " TPUDIST_JOB_SECONDS
      " " TPUDIST_MPIRUN " --bind-to none --oversubscribe";
  for (std::size_t rank = 0; rank < starts.size(); ++rank) {
    command += (rank > 0 ? " : -np 1 " : " -np 1 ") + starts[rank].options + " " +
               program().string() + " " + starts[rank].arguments;
  }
  return command;
}

std::vector<pid_t> children_of(pid_t pid) {
  const std::string process = std::to_string(pid);
  std::ifstream file("/proc/" + process + "/task/" + process + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

}  // namespace

MpiProgram::MpiProgram(const std::vector<RankStart>& starts) : MpiProgram(command_line(starts)) {}

MpiProgram::MpiProgram(const std::string& command) {
  int ends[2];
  if (pipe(ends) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  pid_ = fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    dup2(ends[1], 1);
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execl("/bin/sh", "sh", "-c", command.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  pipe_ = ends[0];
}

MpiProgram::~MpiProgram() {
  if (pid_ > 0) finish();
}

bool MpiProgram::read_some() {
  char buffer[4096];
  const ssize_t count = read(pipe_, buffer, sizeof buffer);
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  output_.append(buffer, static_cast<std::size_t>(count));
  return true;
}

bool MpiProgram::wait_for(const std::string& text) {
  while (output_.find(text) == std::string::npos)
    if (!read_some()) return false;
  return true;
}

// `timeout` starts mpirun, and mpirun the ranks.
std::vector<pid_t> MpiProgram::ranks() const {
  std::vector<pid_t> ranks;
  for (const pid_t mpirun : children_of(pid_))
    for (const pid_t rank : children_of(mpirun)) ranks.push_back(rank);
  return ranks;
}

void MpiProgram::close_output() {
  close(std::exchange(pipe_, -1));
}

Outcome MpiProgram::finish() {
  while (pipe_ >= 0 && read_some()) {
  }
  if (pipe_ >= 0) close_output();
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output_};
}

void replace_by_folder(const std::filesystem::path& file) {
  std::error_code error;  // the program may make the file again in between
  while (!std::filesystem::is_directory(file, error)) {
    std::filesystem::remove(file, error);
    std::filesystem::create_directory(file, error);
  }
}

Outcome run_ranks(int ranks, const std::string& arguments) {
  if (ranks == 0) return run_program(arguments + " 2>&1");
  return run_ranks(std::vector<RankStart>(static_cast<std::size_t>(ranks), {arguments}));
}

Outcome run_ranks(const std::vector<RankStart>& starts) {
  return MpiProgram(starts).finish();
}

}  // namespace tpudist::test
