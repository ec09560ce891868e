#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tpudist {

// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78), as in RFC 3720 (iSCSI).
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace tpudist
