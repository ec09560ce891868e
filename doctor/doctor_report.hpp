#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "doctor/job_facts.hpp"
#include "doctor/warnings.hpp"

namespace tpudist {

// The facts of one rank as text, to send to the others, and back. `parse` throws what
// nlohmann::json throws.
std::string rank_facts_text(const RankFacts& facts);
RankFacts parse_rank_facts(const std::string& text);

// "0-3, 8"; `numbers` ascending.
std::string number_ranges(const std::vector<int>& numbers);

// Bytes per second that each rank has to send and receive for an all_reduce: 2 (R - 1) / R of its
// data (the "bus bandwidth" of NVIDIA's nccl-tests).
double bus_bandwidth(const AllReduceSpeed& speed, std::size_t ranks);

// Aligned tables for people.
std::string doctor_text(const JobFacts& facts, const std::vector<DoctorWarning>& warnings);
// The same for programs: ranks, versions, folder, all_reduce, memory, warnings. Units are bytes and
// seconds.
nlohmann::json doctor_json(const JobFacts& facts, const std::vector<DoctorWarning>& warnings);

}  // namespace tpudist
