// The thread that turns a rank's direct links while the rank does not: while the program computes,
// or its threads sleep in the library.
//
// It sleeps for good until it is armed. Armed, it works as long as there is something to do, then
// sleeps until the links' descriptor is readable. When it finds that a thread of the rank polls in
// the library it is not needed, and sleeps until it is armed again. So a rank that polls is not
// disturbed, and one that computes or sleeps uses no CPU while nothing comes.
//
// Calling thread: Arm may be called by any.
#pragma once

#include <cstdint>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"

namespace ferry::client {

class LinkThread {
 public:
  // What it does. Called on its own thread.
  class Work {
   public:
    // One step of the engine and the links, as the holder of the lease. False: the lease was not to
    // be had.
    virtual bool TryStep(uint32_t* done) = 0;
    // Whether a thread of the rank is in the library and awake.
    virtual bool IsPolled() const = 0;
    // Whether it has to look again by itself once that thread has left, without being armed.
    virtual bool MustStay() const = 0;
    // As in DirectLinks.
    virtual bool PrepareToSleep() = 0;
    virtual uint64_t NextTurnNs(uint64_t now_ns) const = 0;

   protected:
    ~Work() = default;
  };

  explicit LinkThread(Work* work) : work_(*work) {}
  ~LinkThread() { Stop(); }
  LinkThread(const LinkThread&) = delete;
  LinkThread& operator=(const LinkThread&) = delete;

  // `wait_fd` is the links'. kSystem where the system starts no more threads.
  Status Start(int wait_fd);
  // Ends and joins it; it may not have been started.
  void Stop();
  // Has it work from now on; cheap if it does already.
  void Arm();

 private:
  void Run();
  bool AwaitCall(bool armed, uint64_t until_ns);
  bool Disarm();

  Work& work_;
  int wait_fd_ = -1;
  UniqueFd call_;  // eventfd: it was armed, or is to stop
  uint32_t armed_ = 0;
  uint32_t stops_ = 0;
  std::thread thread_;
};

}  // namespace ferry::client
