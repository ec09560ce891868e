#include <fmt/format.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/folder_lock.hpp"
#include "core/numbers.hpp"
#include "core/process.hpp"
#include "core/text.hpp"
#include "dist/health/watchdog.hpp"
#include "launch/commands/commands.hpp"
#include "launch/program/exit_code.hpp"
#include "launch/program/output.hpp"
#include "results/checkpoints/checkpoint_folder.hpp"
#include "results/records/run_folder.hpp"

namespace tpudist {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kRunInUse = 900;  // seconds for ranks on a host that is cut off to end themselves
constexpr double kMpirunEnds = 5;  // seconds after SIGTERM
constexpr double kSrunEnds = 45;   // the same; Slurm's KillWait is 30 s if not configured
constexpr double kProcessesEnd = 5;  // seconds after SIGKILL

struct LaunchArguments {
  std::vector<std::string> hosts, command;
  std::string launcher, agent;
  int ranks = 0;  // 0: as many as the hosts take
  int restarts = 3, least_ranks = 1;
  double patience = 20;
};

struct Host {
  std::string name;
  int ranks = 1;
};

bool in_slurm() {
  return std::getenv("SLURM_JOB_ID") != nullptr;
}

std::string variable(const char* name, const std::string& fallback = "") {
  const char* const value = std::getenv(name);
  return value ? value : fallback;
}

// "a", or "a:4" for four ranks.
Host parse_host(const std::string& word) {
  const std::string name = word.substr(0, word.find(':'));
  const auto ranks = name == word ? 1 : number_of<int>(word.substr(name.size() + 1)).value_or(0);
  if (name.empty() || name[0] == '-' || ranks < 1)
    refuse_value("--hosts", fmt::format("\"{}\" is no NAME or NAME:RANKS", word));
  return {name, ranks};
}

// The nodes of this Slurm job. SLURM_TASKS_PER_NODE is "4(x2),3": two nodes of 4 tasks, one of 3.
std::vector<Host> hosts_of_slurm() {
  std::vector<Host> hosts;
  const std::string command =
      "scontrol show hostnames " + shell_quoted(variable("SLURM_JOB_NODELIST"));
  if (FILE* const pipe = ::popen(command.c_str(), "r")) {
    std::array<char, 1024> line{};
    while (std::fgets(line.data(), line.size(), pipe))
      hosts.push_back({std::string(trim(line.data()))});
    ::pclose(pipe);
  }
  std::size_t at = 0;
  for (const std::string& group : split(variable("SLURM_TASKS_PER_NODE"), ',')) {
    int ranks = 0, nodes = 1;
    std::sscanf(group.c_str(), "%d(x%d)", &ranks, &nodes);
    for (; nodes > 0 && at < hosts.size(); --nodes) hosts[at++].ranks = ranks;
  }
  if (hosts.empty() || at < hosts.size() ||
      std::ranges::any_of(hosts, [](const Host& host) { return host.ranks < 1; }))
    throw ConfigError(
        fmt::format("cannot tell the nodes and tasks of this Slurm job from SLURM_JOB_NODELIST={} "
                    "and SLURM_TASKS_PER_NODE={}; give --hosts",
                    variable("SLURM_JOB_NODELIST"), variable("SLURM_TASKS_PER_NODE")));
  return hosts;
}

bool is_here(const std::string& host) {
  const auto short_name = [](const std::string& name) { return name.substr(0, name.find('.')); };
  return host == "localhost" || short_name(host) == short_name(host_name());
}

int ranks_of(const std::vector<Host>& hosts) {
  return std::accumulate(hosts.begin(), hosts.end(), 0,
                         [](int sum, const Host& host) { return sum + host.ranks; });
}

// "a:4,b:4"
std::string host_list(const std::vector<Host>& hosts, bool with_ranks) {
  std::vector<std::string> words;
  for (const Host& host : hosts)
    words.push_back(with_ranks ? fmt::format("{}:{}", host.name, host.ranks) : host.name);
  return join(words, ",");
}

// The folder of the run, as the words of `train` name it.
fs::path folder_of_run(const std::vector<std::string>& train) {
  const std::string option = "--run-dir";
  for (std::size_t i = 0; i < train.size(); ++i) {
    if (train[i] == option && i + 1 < train.size()) return train[i + 1];
    if (train[i].starts_with(option + "=")) return train[i].substr(option.size() + 1);
  }
  throw ConfigError("launch: give train its --run-dir, where launch finds the checkpoints");
}

struct Newest {
  std::int64_t step = -1;  // -1: there is no checkpoint
  double age = 1e9;        // seconds since it was written, by the clock of the file system
};

Newest newest_of(const fs::path& run) {
  const auto files = list_checkpoints(RunFolder(run).checkpoints());
  if (files.empty()) return {};
  const std::string name = files.front().stem().string();  // step-000000080
  std::error_code error;
  const auto written = fs::last_write_time(files.front(), error);
  return {number_of<std::int64_t>(std::string_view(name).substr(name.find('-') + 1)).value_or(-1),
          std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count()};
}

// What the ranks of a run say that they have finished, in their status files (dist/health).
std::string finished_work(const fs::path& run) {
  std::string lines;
  std::error_code error;
  for (const auto& file : fs::directory_iterator(RunFolder(run).ranks(), error)) {
    std::ifstream text(file.path());
    for (std::string line; std::getline(text, line);)
      if (line.starts_with("finished ")) lines += line;
  }
  return lines;
}

// Exit codes after which a new start would end the same way: done, wrong usage, bad data, stopped,
// or a program that cannot be started.
bool is_final(int code) {
  constexpr std::array codes{0, 2, 3, 85, 126, 127};
  return std::ranges::find(codes, code) != codes.end();
}

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  return {std::istream_iterator<pid_t>(file), {}};
}

// Kills all processes below this one.
void kill_below(pid_t process) {
  for (const pid_t child : children_of(process)) {
    kill_below(child);
    ::kill(child, SIGKILL);
  }
}

// Starts a job and keeps it alive. One object, in a process of one thread, which from then on takes
// signals only in take_signal, and becomes the parent of its children's orphans.
class Launch {
 public:
  explicit Launch(const LaunchArguments& arguments)
      : options_(arguments), run_(folder_of_run(arguments.command)) {
    for (const std::string& word : options_.hosts) hosts_.push_back(parse_host(word));
    if (hosts_.empty() && in_slurm()) hosts_ = hosts_of_slurm();
    if (hosts_.empty()) hosts_.push_back({"localhost", std::max(options_.ranks, 1)});
    if (options_.ranks > ranks_of(hosts_))
      refuse_value("--ranks", fmt::format("the hosts take {} only", ranks_of(hosts_)));
    if (options_.ranks == 0) options_.ranks = ranks_of(hosts_);
    if (options_.least_ranks > options_.ranks)
      refuse_value("--min-ranks", fmt::format("the job has {} only", options_.ranks));
    if (options_.launcher.empty())
      options_.launcher =
          in_slurm() ? "srun --mpi=pmix --kill-on-bad-exit=1 --gpu-bind=none" : "mpirun";
    is_srun_ = fs::path(split(options_.launcher, ' ').front()).filename() == "srun";
    listen();
  }

  // Returns the exit code of the last job.
  int run() {
    int fruitless = 0;  // starts in a row without a new checkpoint
    for (std::vector<Host> hosts = hosts_;; ++restarts_) {
      wait_for_run();
      if (stop_) return finish(static_cast<int>(ErrorKind::stopped));
      const std::int64_t before = newest_of(run_).step;
      const auto begin = Clock::now();
      const int code = run_job(hosts);
      if (is_final(code) || stop_) return finish(code);
      const double took = seconds_since(begin);
      const std::int64_t step = newest_of(run_).step;
      fruitless = step > before ? 0 : fruitless + 1;
      hosts = answering(hosts_);
      std::string silent;
      for (const Host& host : hosts_)
        if (std::ranges::find(hosts, host.name, &Host::name) == hosts.end())
          silent += " " + host.name;
      spdlog::warn("the job ended after {} with exit code {}; {}{}", format_seconds(took), code,
                   silent.empty() ? "its hosts answer" : "no answer from", silent);
      const int ranks = std::min(options_.ranks, ranks_of(hosts));
      if (ranks < options_.least_ranks)
        return give_up(
            fmt::format("{} left, --min-ranks is {}", counted(ranks, "rank"), options_.least_ranks),
            kHungExitCode);
      if (fruitless > options_.restarts)
        return give_up(fmt::format("{} without a new checkpoint, the last exit code is {}",
                                   counted(fruitless, "start"), code),
                       code);
      if (fruitless > 1) pause(options_.patience);  // what is wrong may pass
      const double lost = std::min(seconds_since(begin), newest_of(run_).age);
      lost_ += lost;
      spdlog::info("restart {} {} on {}{}; {} of time lost", restarts_ + 1,
                   step < 0 ? "from the beginning" : fmt::format("from step {}", step),
                   counted(ranks, "rank"),
                   hosts_.size() > 1 ? " of " + host_list(hosts, false) : "", format_seconds(lost));
    }
  }

 private:
  // An ignored signal (nohup, background jobs of a script) stays ignored.
  void listen() {
    ::signal(SIGCHLD, SIG_DFL);
    sigemptyset(&signals_);
    for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP, SIGTSTP, SIGCHLD}) {
      struct sigaction action {};
      ::sigaction(signal, nullptr, &action);
      if (action.sa_handler != SIG_IGN) sigaddset(&signals_, signal);
    }
    ::sigprocmask(SIG_BLOCK, &signals_, &before_);
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  }

  // Waits until a child ends, a signal asks for something, or the time is over.
  void take_signal(long milliseconds) {
    const timespec time{0, milliseconds * 1000000};
    const int signal = ::sigtimedwait(&signals_, nullptr, &time);
    if (signal <= 0 || signal == SIGCHLD) return;
    if (signal == SIGTSTP) {  // Ctrl-Z pauses the job, too
      if (job_ > 0) ::kill(job_, SIGTSTP);
      ::raise(SIGSTOP);
      if (job_ > 0) ::kill(job_, SIGCONT);
      return;
    }
    at_once_ = at_once_ || (stop_ && signal == SIGINT);
    stop_ = true;
  }

  void pause(double seconds) {
    for (const auto begin = Clock::now(); !stop_ && seconds_since(begin) < seconds;)
      take_signal(200);
  }

  // Starts a command of the shell without input, in a process group of its own: Ctrl-C reaches only
  // this process. If this process is killed, the command gets SIGUSR2, so that a job stops with a
  // checkpoint. `quiet`: its output is dropped.
  pid_t start(const std::string& command, bool quiet) const {
    const pid_t parent = ::getpid(), child = ::fork();
    if (child < 0)
      throw Error(ErrorKind::failed, fmt::format("no new process: {}", std::strerror(errno)));
    ::setpgid(child, child);
    if (child > 0) return child;
    ::prctl(PR_SET_PDEATHSIG, SIGUSR2);
    if (::getppid() != parent) ::_exit(kHungExitCode);
    for (const int signal : {SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
    ::sigprocmask(SIG_SETMASK, &before_, nullptr);
    const std::string line =
        fmt::format("exec {} < /dev/null{}", command, quiet ? " > /dev/null 2>&1" : "");
    ::execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
    ::_exit(127);
  }

  std::string command_for(const std::vector<Host>& hosts) const {
    const int ranks = std::min(options_.ranks, ranks_of(hosts));
    std::string command = options_.launcher;
    if (is_srun_) {
      command += fmt::format(" --nodes={} --ntasks={} --nodelist={}", hosts.size(), ranks,
                             shell_word(host_list(hosts, false)));
    } else {
      command += fmt::format(" -np {}", ranks);
      if (!options_.hosts.empty() || in_slurm())
        command += " --host " + shell_word(host_list(hosts, true));
      if (!options_.agent.empty()) command += " --mca plm_rsh_agent " + shell_word(options_.agent);
    }
    command += " " + shell_word(fs::read_symlink("/proc/self/exe").string());
    for (const std::string& word : options_.command) command += " " + shell_word(word);
    const bool given = std::ranges::find(options_.command, "--resume") != options_.command.end();
    return command + (restarts_ > 0 && !given ? " --resume" : "");
  }

  // Those of `hosts` on which a command can be started. All are asked at the same time.
  std::vector<Host> answering(std::vector<Host> hosts) const {
    std::string agent = options_.agent;
    if (agent.empty())
      agent = in_slurm() ? "srun --quiet --overlap --mpi=none --nodes=1 --ntasks=1 --nodelist"
                         : variable("OMPI_MCA_plm_rsh_agent", "ssh -o BatchMode=yes");
    std::map<pid_t, std::string> asked;
    for (const Host& host : hosts)
      if (!is_here(host.name))
        asked[start(fmt::format("{} {} true", agent, shell_word(host.name)), true)] = host.name;
    for (const auto begin = Clock::now(); !asked.empty();) {
      const bool late = seconds_since(begin) > options_.patience;
      std::erase_if(asked, [&](const auto& question) {
        const auto& [process, name] = question;
        int status = 0;
        if (late) ::kill(-process, SIGKILL);
        if (::waitpid(process, &status, late ? 0 : WNOHANG) == 0) return false;
        if (status != 0) std::erase_if(hosts, [&](const Host& host) { return host.name == name; });
        return true;
      });
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return hosts;
  }

  // Runs the job once. Returns its exit code, as shells count it; kHungExitCode if it had to be
  // ended.
  int run_job(const std::vector<Host>& hosts) {
    const std::string command = command_for(hosts);
    spdlog::debug("{}", command);
    const double interval = std::min(0.25 * options_.patience, 5.0);
    std::string finished;
    double silence = 0;  // seconds since anything was finished, or the hosts answered
    bool told = false, lost = false;
    std::optional<Clock::time_point> ended;  // when the job was told to end
    int status = 0;
    job_ = start(command, false);
    for (auto looked = Clock::now(); ::waitpid(job_, &status, WNOHANG) == 0;) {
      take_signal(200);
      if (stop_ && !std::exchange(told, true)) {
        spdlog::info("asks the ranks to stop with a checkpoint; Ctrl-C ends them at once");
        ::kill(job_, SIGUSR2);
      }
      if ((lost || at_once_) && !ended) {
        ::kill(job_, SIGTERM);
        ended = Clock::now();
      }
      if (ended && seconds_since(*ended) > (is_srun_ ? kSrunEnds : kMpirunEnds))
        kill_below(::getpid());
      if (ended || seconds_since(looked) < interval) continue;
      // A process or machine that slept counts almost nothing.
      silence += std::min(seconds_since(looked), 2 * interval);
      looked = Clock::now();
      if (std::string now = finished_work(run_); now != std::exchange(finished, now)) silence = 0;
      if (silence < options_.patience) continue;
      lost = answering(hosts).size() < hosts.size();
      silence = 0;
    }
    job_ = -1;
    for (const auto begin = Clock::now(); !children_of(::getpid()).empty();) {
      if (seconds_since(begin) > kProcessesEnd) {
        spdlog::warn("processes of the job do not end: {}",
                     fmt::join(children_of(::getpid()), ", "));
        break;
      }
      kill_below(::getpid());
      while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    if (lost && ended) return kHungExitCode;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

  // Two trainings never write into one folder: a rank 0 on a host that is cut off ends by itself,
  // after dist.timeout.
  void wait_for_run() {
    const auto begin = Clock::now();
    for (bool told = false; !stop_; pause(1)) {
      const auto holder = lock_holder(run_);
      if (!holder) return;
      if (restarts_ == 0 || seconds_since(begin) > kRunInUse)
        throw InUseError(
            fmt::format("{}: is in use by {}; wait for its end, or take another folder",
                        run_.string(), *holder));
      if (!std::exchange(told, true))
        spdlog::warn("{} is still in use by {}: waits for its end", run_.string(), *holder);
    }
  }

  int finish(int code) const {
    if (restarts_ > 0)
      spdlog::info("{} in all, {} of time lost", counted(restarts_, "restart"),
                   format_seconds(lost_));
    // The second case: asked to stop before the ranks could listen.
    return at_once_ ? 128 + SIGINT : stop_ && code > 128 ? 128 + SIGTERM : code;
  }

  int give_up(const std::string& why, int code) const {
    print_failure({fmt::format("launch gives up: {}; continue with --resume", why), code});
    return finish(code);
  }

  LaunchArguments options_;
  const fs::path run_;
  std::vector<Host> hosts_;
  bool is_srun_ = false;
  sigset_t signals_{}, before_{};
  bool stop_ = false, at_once_ = false;  // what signals asked for
  pid_t job_ = -1;
  int restarts_ = 0;
  double lost_ = 0;  // seconds of work that is done again, and of waiting
};

}  // namespace

void add_launch_command(Command app) {
  auto arguments = std::make_shared<LaunchArguments>();
  const Command command =
      app.add_command("launch", "Start a training on several ranks, and again when ranks are lost");
  command.footer(
      "When a rank or a host is lost, the job starts again from its newest checkpoint, on the "
      "hosts that answer. The\nresult has the bits of an undisturbed run. A wrong command line or "
      "configuration, bad data and a stop (exit codes\n2, 3, 85) end it. SIGUSR1, SIGUSR2, "
      "SIGTERM, SIGHUP or Ctrl-C asks the ranks to stop with a checkpoint.\n\n"
      "Example:\n  tpudist launch --hosts a:4,b:4 --min-ranks 4 -- train experiments/nlp.yaml "
      "--run-dir runs/nlp-1");
  command
      .add_option("command", arguments->command,
                  "After --: `train` and its words, with a --run-dir")
      .required();
  command
      .add_option(
          "--hosts", arguments->hosts,
          "NAME or NAME:RANKS, ... (default: this host; in a Slurm job its nodes and tasks)")
      .split_at(',');
  command
      .add_option("--ranks", arguments->ranks, "Ranks at most (default: all that the hosts take)")
      .in_range(1, 1 << 16);
  command
      .add_option("--min-ranks", arguments->least_ranks,
                  "Give up when fewer ranks than these are left")
      .in_range(1, 1 << 16)
      .show_default();
  command
      .add_option("--restarts", arguments->restarts,
                  "Give up after N restarts in a row without a new checkpoint")
      .in_range(0, 1000)
      .show_default();
  command.add_option("--launcher", arguments->launcher,
                     "mpirun or srun, with options for it (default: mpirun; in a Slurm job `srun "
                     "--mpi=pmix --kill-on-bad-exit=1 --gpu-bind=none`)");
  command.add_option(
      "--agent", arguments->agent,
      "Starts a command on a host: AGENT HOST COMMAND (default: srun in a Slurm job, "
      "else Open MPI's, ssh)");
  command
      .add_option("--patience", arguments->patience,
                  "Seconds without progress after which the hosts are asked for an answer")
      .positive()
      .show_default();
  command.run([arguments] {
    if (arguments->command.front() != "train")
      throw ConfigError("launch starts `train` only: tpudist launch ... -- train FILE ...");
    if (launched_ranks() > 1)
      throw ConfigError("launch starts the ranks itself: call it without mpirun and srun");
    throw EndWith(Launch(*arguments).run());
  });
}

}  // namespace tpudist
