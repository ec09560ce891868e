#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace tpudist {

// `text` as one word of a POSIX shell; in single quotes if the shell would otherwise change it.
std::string shell_word(const std::string& text);
// The same, always in quotes.
std::string shell_quoted(std::string_view text);

// The command line of this process, quoted for a shell if needed; "unknown" if the system does
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
// The smallest limit of the control groups (version 1 or 2) in `membership` and of their parents;
// 0: none. memory_limit is in bytes, cpu_quota in cores (0.5: half a core).
double memory_limit(const std::filesystem::path& root = kControlGroups,
                    const std::string& membership = own_groups());
double cpu_quota(const std::filesystem::path& root = kControlGroups,
                 const std::string& membership = own_groups());
// The number of threads for which this process has cores, by CPU affinity and quota; at least 1.
int usable_cores();

// Lowers the priority of the calling thread from here on (nice 10): if cores are short, the thread
// gets a tenth of another thread's time. A lower priority stays as it is. Linux has one value per
// thread. No result depends on the priority, so a refusal by the system is no error.
void give_way_to_others();

}  // namespace tpudist
