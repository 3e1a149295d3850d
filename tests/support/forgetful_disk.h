// ForgetfulDisk: files in memory that lose what was not synced when the power is cut.
//
//   ForgetfulDisk disk;
//   std::unique_ptr<rocksdb::Env> env = disk.make_env();
//   disk.cut_after(17, seed);     // before the 17th write, sync, rename ... from now
//   ... use env until disk.is_off(); what is written from then on is for nothing ...
//   disk.power_on();              // what a disk may still have: only what was synced is certain
//
// Whoever uses the disk does not notice the cut, as a process does not: it is gone. Here it goes on
// in a world that is thrown away, so that no error of the disk is tested by mistake.
//
// Bytes that were appended and not synced survive up to a random point, torn within a record; the
// end of a log file may hold bytes nobody wrote. Of a log file whose space is set aside with its
// length (fallocate_with_keep_size off), any sector that was not synced may be zeros, and zeros
// follow. Overwritten places are old, new or half of each.
// Creating, renaming and deleting are undone from a random one on, unless their folder was synced.
// image() and load() take all files out and put them in, for copies and for damaging them.
//
// Threads: any thread; one lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace rocksdb {
class Env;
}

namespace ordo::testing_support {

class ForgetfulDisk {
 public:
  using Image = std::map<std::string, std::string>;  // Path to content.

  ForgetfulDisk();
  ~ForgetfulDisk();
  ForgetfulDisk(const ForgetfulDisk&) = delete;
  ForgetfulDisk& operator=(const ForgetfulDisk&) = delete;

  // Does not outlive the disk's files, which all environments share.
  std::unique_ptr<rocksdb::Env> make_env();

  void cut_after(std::uint64_t operations, std::uint64_t seed);
  void cut_now(std::uint64_t seed) { cut_after(0, seed); }
  bool is_off() const;
  std::uint64_t operations() const;  // So far: what cut_after() counts.
  // REQUIRES: it is off, and nothing that used the disk before is left.
  void power_on();

  // As if all was synced.
  Image image() const;
  void load(const Image& image);

  void set_free_bytes(std::uint64_t bytes);
  // The next sync of a file whose name ends so fails, if there is something to sync, and only that
  // one, or `count` of them.
  enum class SyncFault : std::uint8_t { broken, no_space };
  void fail_next_sync(const std::string& name_end, SyncFault fault = SyncFault::broken,
                      unsigned count = 1);
  // As long as set, whoever deletes a file is told that it is gone, but it stays: as after a crash
  // just before.
  void set_keeps_deleted(bool keeps);
  // As long as set, nothing can be appended to any file: no space.
  void set_full(bool is_full);

 private:
  friend class ForgetfulFileSystem;
  struct Files;
  std::shared_ptr<Files> files_;
};

}  // namespace ordo::testing_support
