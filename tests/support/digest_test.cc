#include "tc/support/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace tc {
namespace {

std::string hash(std::string_view text) { return Digest::of(text).to_string(); }

// FIPS 180-4's examples, and NIST's for the empty message.
TEST(Digest, StandardVectors) {
  EXPECT_EQ(hash(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hash("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hash("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(hash(std::string(1'000'000, 'a')), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// The padding takes a second block from 56 bytes on.
TEST(Digest, EveryLengthDiffers) {
  std::set<std::string> seen;
  for (size_t n = 0; n <= 130; ++n) EXPECT_TRUE(seen.insert(hash(std::string(n, 'x'))).second) << n;
}

}  // namespace
}  // namespace tc
