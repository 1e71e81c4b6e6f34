#pragma once

#include <cstdint>

namespace tc::tile {

/// Who accesses, and when. Stamps count block barriers over a whole launch: each block starts with a new one, and each
/// of its barriers makes a new one. Epochs count the barriers of warps in the same way.
struct Moment {
  uint32_t block_start, block_end;  ///< the stamps of the block: others are those of another one
  uint32_t stamp;
  uint32_t epoch;
  uint16_t thread;
  int site;
  uint32_t group_epoch;  ///< as an epoch, of the barriers of a warpgroup
  bool is_of_block(uint32_t any_stamp) const { return any_stamp >= block_start && any_stamp < block_end; }
};

/// What is remembered of an element to find accesses that no barrier orders: the last write, and of the reads since
/// the last barrier as much as decides whether a write may follow.
struct Shadow {
  enum : uint8_t { kAtomic = 1, kPending = 2 };                                            // of the write
  enum : uint8_t { kManyThreads = 1, kManyWarps = 2, kOtherBlocks = 4, kManyGroups = 8 };  // of the reads
  static constexpr int kGroup = 128;                                                       // threads of a warpgroup
  uint32_t write_stamp = 0;                                                                ///< 0: never
  uint32_t write_epoch = 0;
  uint32_t read_stamp = 0;
  uint32_t read_epoch = 0;
  uint32_t write_group_epoch = 0;
  uint32_t read_group_epoch = 0;
  int write_site = -1;
  int read_site = -1;
  uint16_t write_thread = 0;
  uint16_t read_thread = 0;
  uint8_t write_flags = 0;
  uint8_t read_flags = 0;

  /// True if the last write is not ordered before `now`. `across_blocks`: the element is global.
  bool write_races(const Moment& now, bool across_blocks) const {
    if (write_stamp == 0) return false;
    if (!now.is_of_block(write_stamp)) return across_blocks;
    if (write_stamp != now.stamp || write_thread == now.thread) return false;
    if (write_thread / kGroup == now.thread / kGroup && write_group_epoch != now.group_epoch) return false;
    return write_thread / 32 != now.thread / 32 || write_epoch == now.epoch;
  }

  /// True if some read is not ordered before `now`.
  bool read_races(const Moment& now, bool across_blocks) const {
    if (across_blocks && (read_flags & kOtherBlocks)) return true;
    if (read_stamp == 0) return false;
    if (!now.is_of_block(read_stamp)) return across_blocks;
    if (read_stamp != now.stamp) return false;
    if ((read_flags & kManyGroups) || read_thread / kGroup != now.thread / kGroup) return true;
    if (read_group_epoch != now.group_epoch) return false;
    if ((read_flags & kManyWarps) || read_thread / 32 != now.thread / 32) return true;
    return read_epoch == now.epoch && ((read_flags & kManyThreads) || read_thread != now.thread);
  }

  /// A copy into the element is under way.
  bool pending(const Moment& now) const { return (write_flags & kPending) && now.is_of_block(write_stamp); }

  void record_read(const Moment& now) {
    if (read_stamp != now.stamp) {
      read_flags &= kOtherBlocks;
      if (read_stamp != 0 && !now.is_of_block(read_stamp)) read_flags |= kOtherBlocks;
      read_stamp = now.stamp;
    } else if (read_thread / kGroup != now.thread / kGroup) {
      read_flags |= kManyGroups;
    } else if (read_group_epoch != now.group_epoch) {
      read_flags &= static_cast<uint8_t>(~(kManyThreads | kManyWarps));
    } else if (read_thread / 32 != now.thread / 32) {
      read_flags |= kManyWarps;
    } else if (read_epoch != now.epoch) {
      read_flags &= static_cast<uint8_t>(~kManyThreads);
    } else if (read_thread != now.thread) {
      read_flags |= kManyThreads;
      return;
    } else {
      return;
    }
    read_thread = now.thread;
    read_epoch = now.epoch;
    read_group_epoch = now.group_epoch;
    read_site = now.site;
  }

  void record_write(const Moment& now, uint8_t flags) {
    write_stamp = now.stamp;
    write_epoch = now.epoch;
    write_group_epoch = now.group_epoch;
    write_thread = now.thread;
    write_site = now.site;
    write_flags = flags;
  }
};

}  // namespace tc::tile
