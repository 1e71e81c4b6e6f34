#include "tc/cli/npy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tc/cli/npy_header.h"
#include "tests/cli/process.h"

namespace tc::cli {
namespace {

using api::Tensor;
using api::TensorSpec;
using testing::Folder;

/// A file of a format version with this header and data.
std::string npy(const std::string& header, const std::string& data, int version = 1) {
  std::string bytes = "\x93NUMPY";
  bytes += static_cast<char>(version);
  bytes += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 255);
  return bytes + header + data;
}

std::string error_of(const Folder& folder, const std::string& bytes) {
  folder.write("x.npy", bytes);
  const Result<Tensor> tensor = read_npy(folder.path("x.npy"));
  EXPECT_FALSE(tensor);
  if (tensor) return "no error";
  std::string text = tensor.error().to_string();
  // Messages quote the whole path, which differs from run to run.
  for (size_t at = text.find(folder.path("")); at != std::string::npos; at = text.find(folder.path(""))) {
    text.erase(at, folder.path("").size());
  }
  return text;
}

TEST(Npy, WhatIsWrittenIsReadForEveryType) {
  const Folder folder;
  for (int i = 0; i < kScalarTypes; ++i) {
    const auto type = static_cast<ScalarType>(i);
    for (const std::vector<int64_t>& shape : std::vector<std::vector<int64_t>>{{}, {5}, {2, 3}, {0, 4}, {2, 1, 3}}) {
      Result<Tensor> tensor = Tensor::allocate({.type = type, .shape = shape});
      const int64_t bytes = tensor->spec().span_bytes();
      for (int64_t b = 0; b < bytes; ++b)
        tensor->data_as<char>()[b] = static_cast<char>(type == ScalarType::kBool ? b & 1 : b + 1);
      ASSERT_TRUE(write_npy(folder.path("x.npy"), *tensor));
      const Result<Tensor> back = read_npy(folder.path("x.npy"), type);
      ASSERT_TRUE(back) << back.error().to_string();
      EXPECT_EQ(back->spec(), tensor->spec());
      EXPECT_TRUE(std::equal(tensor->data_as<char>(), tensor->data_as<char>() + bytes, back->data_as<char>()));
    }
  }
}

TEST(Npy, TheHeaderIsNumPys) {
  const std::string header = npy_header({.type = ScalarType::kFloat32, .shape = {3, 4}});
  EXPECT_EQ(header.size(), 128U);
  EXPECT_EQ(header.substr(0, 8), std::string("\x93NUMPY\x01\x00", 8));
  EXPECT_EQ(header.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), } ");
  EXPECT_EQ(header.back(), '\n');
  EXPECT_NE(npy_header({.type = ScalarType::kInt8, .shape = {7}}).find("'shape': (7,)"), std::string::npos);
  EXPECT_NE(npy_header({.type = ScalarType::kInt8, .shape = {}}).find("'shape': ()"), std::string::npos);
}

TEST(Npy, ReadsVersionsTwoAndThree) {
  const Folder folder;
  for (const int version : {2, 3}) {
    folder.write("x.npy", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (3,)}", "abc", version));
    const Result<Tensor> tensor = read_npy(folder.path("x.npy"));
    ASSERT_TRUE(tensor) << tensor.error().to_string();
    EXPECT_EQ(tensor->data_as<char>()[2], 'c');
  }
}

TEST(Npy, FortranOrderBecomesStrides) {
  const Folder folder;
  folder.write("x.npy", npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3)}", "abcdef"));
  const Result<Tensor> tensor = read_npy(folder.path("x.npy"));
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  EXPECT_EQ(tensor->spec(), (TensorSpec{.type = ScalarType::kUInt8, .shape = {2, 3}, .strides = {1, 2}}));
}

TEST(Npy, BigEndianIsSwapped) {
  const Folder folder;
  folder.write("x.npy", npy("{'descr': '>i4', 'fortran_order': False, 'shape': (1,)}", std::string("\0\0\1\2", 4)));
  const Result<Tensor> tensor = read_npy(folder.path("x.npy"));
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  EXPECT_EQ(*tensor->data_as<int32_t>(), 0x102);
}

TEST(Npy, BoolsAreZeroOrOne) {
  const Folder folder;
  folder.write("x.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}", std::string("\0\2\xff", 3)));
  const Result<Tensor> tensor = read_npy(folder.path("x.npy"));
  ASSERT_TRUE(tensor) << tensor.error().to_string();
  EXPECT_EQ(tensor->data_as<uint8_t>()[1], 1);
  EXPECT_EQ(tensor->data_as<uint8_t>()[2], 1);
}

TEST(Npy, ReadsWhatPython2Wrote) {
  const Result<NpyHeader> header =
      parse_npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (3L, 4L), }", "x");
  ASSERT_TRUE(header) << header.error().to_string();
  EXPECT_EQ(header->spec.shape, (std::vector<int64_t>{3, 4}));
}

TEST(Npy, FilesThatAreNone) {
  const Folder folder;
  EXPECT_EQ(read_npy(folder.path("none.npy")).error().to_string(),
            "error: cannot open '" + folder.path("none.npy") + "': No such file or directory\n");
  EXPECT_EQ(read_npy(folder.path(".")).error().to_string(),
            "error: cannot read '" + folder.path(".") + "': Is a directory\n");
  EXPECT_EQ(error_of(folder, ""), "error: 'x.npy' is not a .npy file\n");
  EXPECT_EQ(error_of(folder, "PK\x03\x04 a zip file"), "error: 'x.npy' is not a .npy file\n");
  EXPECT_EQ(error_of(folder, "\x93NUM"), "error: 'x.npy' ends after 4 bytes, within its header\n");
  EXPECT_EQ(error_of(folder, npy("{}", "", 9)),
            "error: 'x.npy' is of .npy format version 9.0; versions 1 to 3 are known\n");
}

TEST(Npy, HeadersThatAreWrong) {
  const Folder folder;
  const auto header_error = [&](const std::string& header) { return error_of(folder, npy(header, "")); };
  EXPECT_EQ(error_of(folder, npy("{'descr'", "").substr(0, 14)),
            "error: 'x.npy' ends after 4 bytes of its header, which has 8\n");
  EXPECT_EQ(error_of(folder, std::string("\x93NUMPY\x02\x00\xff\xff\xff\x7f", 12)),
            "error: 'x.npy' claims a header of 2147483647 bytes; at most 1048576 are read\n");
  EXPECT_EQ(header_error("{'descr': <f4}"),
            "error: the header of 'x.npy' is malformed at byte 10: expected a string\n");
  EXPECT_EQ(
      header_error("{'colour': 'red'}"),
      "error: the header of 'x.npy' is malformed at byte 10: expected the key 'descr', 'fortran_order' or 'shape'\n");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': False}"), "error: the header of 'x.npy' lacks 'shape'\n");
  EXPECT_EQ(header_error("{'descr': '<c8', 'fortran_order': False, 'shape': ()}"),
            "error: 'x.npy' holds elements of NumPy's type '<c8', which the language does not have\n");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}"),
            "error: the header of 'x.npy' is malformed at byte 51: expected an extent\n");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}"),
            "error: the header of 'x.npy' is malformed at byte 51: expected an extent that fits 64 bits\n");
  EXPECT_EQ(header_error("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"),
            "error: 'x.npy' claims the shape (4294967296, 4294967296), which has more bytes than 64 bits can count\n");
  EXPECT_EQ(header_error("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}"),
            "error: the header of 'x.npy' is malformed at byte 10: expected a string\n");
}

TEST(Npy, DataOfTheWrongLength) {
  const Folder folder;
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}";
  EXPECT_EQ(error_of(folder, npy(header, std::string(23, 'x'))),
            "error: 'x.npy' has 23 bytes of data; float32(2, 3) takes 24\n");
  EXPECT_EQ(error_of(folder, npy(header, std::string(25, 'x'))),
            "error: 'x.npy' has 25 bytes of data; float32(2, 3) takes 24\n");
}

TEST(Npy, NoPrefixOfAFileIsAccepted) {
  const Folder folder;
  const std::string whole = npy_header({.type = ScalarType::kFloat32, .shape = {2}}) + std::string(8, '\1');
  for (size_t length = 0; length < whole.size(); ++length) {
    folder.write("x.npy", whole.substr(0, length));
    EXPECT_FALSE(read_npy(folder.path("x.npy"))) << length;
  }
  folder.write("x.npy", whole);
  EXPECT_TRUE(read_npy(folder.path("x.npy")));
}

}  // namespace
}  // namespace tc::cli
