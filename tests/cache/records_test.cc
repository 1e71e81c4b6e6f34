#include "tc/cache/records.h"

#include <gtest/gtest.h>

#include <functional>

#include "proto/cache.pb.h"
#include "tests/cache/values.h"

namespace tc::cache::test {
namespace {

proto::CacheEntry message_of(const Entry& entry) {
  proto::CacheEntry message;
  EXPECT_TRUE(message.ParseFromString(to_bytes(key_of(1), entry)));
  return message;
}

TEST(Records, MapsAndClustersComeBack) {
  const std::optional<StoredEntry> read = entry_from(to_bytes(key_of(1), entry_with_map(1)));
  ASSERT_TRUE(read);
  expect_equal(read->entry, entry_with_map(1));
}

/// A reader that knows neither takes no entry of schema 2. All others stay as they were.
TEST(Records, MapsAndClustersHaveASchemaOfTheirOwn) {
  EXPECT_EQ(message_of(entry_of(1)).schema(), 1u);
  EXPECT_EQ(message_of(entry_with_map(1)).schema(), 2u);
  Entry in_clusters = entry_of(1);
  in_clusters.gpu.plan.kernels[0].cluster = {2, 1, 1};
  EXPECT_EQ(message_of(in_clusters).schema(), 2u);
}

TEST(Records, ALaterSchemaIsRefused) {
  proto::CacheEntry message = message_of(entry_of(1));
  for (const uint32_t schema : {0u, 3u}) {
    message.set_schema(schema);
    EXPECT_FALSE(entry_from(message.SerializeAsString())) << schema;
  }
}

TEST(Records, MapsThatALaunchCannotUseAreRefused) {
  const std::function<void(proto::LaunchPlan&)> changes[] = {
      [](proto::LaunchPlan& plan) { plan.mutable_maps(0)->mutable_of()->set_index(2); },
      [](proto::LaunchPlan& plan) { plan.mutable_maps(0)->mutable_of()->set_kind(2); },
      [](proto::LaunchPlan& plan) { plan.mutable_maps(0)->add_extents(1); },
      [](proto::LaunchPlan& plan) { plan.mutable_maps(0)->clear_byte_strides(); },
      [](proto::LaunchPlan& plan) { plan.mutable_maps(0)->clear_box(); },
      [](proto::LaunchPlan& plan) { plan.mutable_launches(0)->mutable_arguments(2)->set_index(2); },
      [](proto::LaunchPlan& plan) { plan.mutable_launches(0)->add_cluster(1); },
  };
  for (size_t i = 0; i < std::size(changes); ++i) {
    proto::CacheEntry message = message_of(entry_with_map(1));
    changes[i](*message.mutable_gpu()->mutable_plan());
    EXPECT_FALSE(entry_from(message.SerializeAsString())) << i;
  }
}

}  // namespace
}  // namespace tc::cache::test
