#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tpudist {

// `text` as one word of a POSIX shell; in single quotes where the shell would otherwise change it.
std::string shell_word(const std::string& text);
// The same, always in quotes.
std::string shell_quoted(std::string_view text);

// The command line of this process, quoted for a shell where needed; "unknown" if the system does
// not tell.
std::string command_line();

// The processor of this machine, such as "AMD EPYC 9R14"; "unknown" if the system does not tell.
std::string processor_name();

// The name of this machine, for messages and records; "an unknown host" if the system does not
// tell.
std::string host_name();

// Largest resident set of this process so far (VmHWM), in bytes.
std::uint64_t peak_resident_bytes();

inline constexpr const char* kControlGroups = "/sys/fs/cgroup";
std::string own_groups();  // /proc/self/cgroup
// The smallest limit that control groups, of version 1 or 2, set for a process: those of its
// `membership` and their parents; 0: none. Of memory in bytes, of time in cores (0.5: half of one).
double memory_limit(const std::filesystem::path& root = kControlGroups,
                    const std::string& membership = own_groups());
double cpu_quota(const std::filesystem::path& root = kControlGroups,
                 const std::string& membership = own_groups());
// For how many threads this process has cores, by its CPU affinity and its quota; at least 1.
int usable_cores();

// Lowers the priority of the calling thread from here on (nice 10): where cores are short, it gets
// a tenth of another thread's time. A thread that has a lower priority already keeps it. Linux has
// one value per thread. Nothing depends on it, so a refusal by the system is no error.
void give_way_to_others();

}  // namespace tpudist
