#include "data/npz/npy_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "core/error.hpp"
#include "data/npz/npz_writer.hpp"

namespace tpudist {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string prefix(const std::string& text, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += {static_cast<char>(version), '\0'};
  for (int shift = 0; shift < (version == 1 ? 16 : 32); shift += 8) {
    bytes += static_cast<char>(text.size() >> shift & 0xff);
  }
  return bytes + text;
}

NpyHeader parse(const std::string& bytes) {
  const auto span = std::as_bytes(std::span(bytes));
  const std::size_t size =
      npy_prefix_bytes(span.first(std::min<std::size_t>(span.size(), 12)), "x");
  return parse_npy_prefix(span.first(std::min(size, span.size())), "x");
}

std::string error_of(const std::string& bytes) {
  try {
    parse(bytes);
  } catch (const DataError& e) {
    return e.what();
  }
  return "no error";
}

std::string header(const std::string& descr, const std::string& shape,
                   const std::string& fortran = "False") {
  return prefix("{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape +
                ", }   \n");
}

TEST(NpyHeader, ReadsWhatNumPyWrites) {
  for (const int version : {1, 2, 3}) {
    const NpyHeader h = parse(prefix(
        "{'descr': '<f4', 'fortran_order': False, 'shape': (372, 140), }          \n", version));
    EXPECT_EQ(h.kind, 'f');
    EXPECT_EQ(h.item_bytes, 4);
    EXPECT_THAT(h.shape, ElementsAre(372, 140));
    EXPECT_EQ(h.elements, 372u * 140u);
    EXPECT_EQ(h.data_bytes, 4u * 372u * 140u);
  }
  EXPECT_THAT(parse(header("|u1", "(7,)")).shape, ElementsAre(7));
  EXPECT_EQ(parse(header("<i8", "()")).elements, 1u);
  EXPECT_EQ(parse(header("<i8", "(0, 5)")).elements, 0u);
}

TEST(NpyHeader, FortranOrderMattersFromTwoAxesOn) {
  EXPECT_EQ(parse(header("<i8", "(3,)", "True")).elements, 3u);
  EXPECT_THAT(error_of(header("<i8", "(3, 2)", "True")), HasSubstr("Fortran order"));
}

TEST(NpyHeader, RefusesOtherTypes) {
  EXPECT_THAT(error_of(header("|O", "(3,)")), HasSubstr("object"));
  EXPECT_THAT(error_of(header(">i8", "(3,)")), HasSubstr("big-endian"));
  for (const char* descr : {"|b1", "|f2", "<f16", "<c8", "<U5", "|S3", "<M8[ns]", "<i3", "|i8", "",
                            "f4", "<u0", "<f1"}) {
    EXPECT_THAT(error_of(header(descr, "(3,)")), HasSubstr("x: ")) << descr;
  }
  EXPECT_THAT(
      error_of(prefix("{'descr': [('a', '<i4')], 'fortran_order': False, 'shape': (3,), }")),
      HasSubstr("structured"));
}

TEST(NpyHeader, RefusesImpossibleShapes) {
  EXPECT_THAT(error_of(header("<i8", "(-1, 2)")), HasSubstr("negative dimension"));
  EXPECT_THAT(error_of(header("<i8", "(99999999999999999999,)")), HasSubstr("too large"));
  EXPECT_THAT(error_of(header("<i8", "(4294967296, 4294967296)")), HasSubstr("too large"));
  EXPECT_THAT(error_of(header("<i8", "(5)")), HasSubstr("malformed"));
  EXPECT_THAT(error_of(header("<i8", "(5 6)")), HasSubstr("malformed"));
}

TEST(NpyHeader, RefusesMalformedText) {
  EXPECT_THAT(error_of("PK"), HasSubstr("not a .npy"));
  EXPECT_THAT(error_of(prefix("{}          ")), HasSubstr("lacks"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)} x")),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'descr': '<i4', 'shape': (3,)}")),
              HasSubstr("twice"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'other': False}")), HasSubstr("unknown key"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': false, 'shape': (3,)}")),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix("{'descr': '<i4', 'fortran_order': False, 'shape': (3,)", 1)),
              HasSubstr("malformed"));
  EXPECT_THAT(error_of(prefix(header("<i8", "(3,)"), 4)), HasSubstr("version"));
}

RC_GTEST_PROP(NpyHeader, ReadsBackWhatTheWriterWrites, ()) {
  const auto shape = *rc::gen::resize(
      5, rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 1000)));
  const auto descr =
      *rc::gen::element<std::string>("<f2", "<f4", "<f8", "|u1", "|i1", "<u2", "<i4", "<u8");
  const NpyHeader h = parse(npy_header(descr, shape));
  RC_ASSERT(h.shape == shape);
  RC_ASSERT(h.descr == descr);
}

RC_GTEST_PROP(NpyHeader, AnyBytesParseOrThrowDataError, ()) {
  std::string bytes = header("<f4", "(3, 4)");
  const auto changes = *rc::gen::container<std::vector<std::pair<std::size_t, char>>>(
      rc::gen::pair(rc::gen::inRange<std::size_t>(0, bytes.size()), rc::gen::arbitrary<char>()));
  for (const auto& [at, value] : changes) bytes[at] = value;
  bytes.resize(*rc::gen::inRange<std::size_t>(0, bytes.size() + 1));
  error_of(bytes);  // anything but DataError fails the test
}

}  // namespace
}  // namespace tpudist
