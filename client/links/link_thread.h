// The thread that turns a rank's direct links while the rank does not: while the program computes,
// or its threads sleep in the library.
//
// It sleeps for good until it is armed. Armed, it works as long as there is something to do, then
// sleeps until the links' descriptor is readable. While the rank's own threads turn the links it
// dozes: it looks again after a pause that grows, and sleeps for good only if they have gone on for
// some milliseconds. So arming it costs a load as a rule, and a system call now and then: a rank
// that polls is not disturbed, and one that computes or sleeps uses no CPU while nothing comes.
//
// Calling thread: Arm and Call may be called by any.
#pragma once

#include <cstdint>
#include <thread>

#include "common/status.h"
#include "common/unique_fd.h"
#include "shm/atomic.h"

namespace ferry::client {

class LinkThread {
 public:
  // The work of the link thread, which calls these functions.
  class Work {
   public:
    // The state of the rank's own threads at this moment.
    enum class Threads : uint8_t {
      kAway,   // none of them waits in the library
      kPoll,   // one waits there, and will arm the link thread if it leaves work undone
      kSleep,  // those that wait there sleep
      kIdle,   // there is nothing to turn
    };
    virtual Threads RankThreads() const = 0;
    // Returns the number of turns that the rank's own threads have given the links.
    virtual uint32_t Turns() const = 0;
    // Makes one step of the engine and the links, as the holder of the lease. False: the lease was
    // not free.
    virtual bool TryStep(uint32_t* done) = 0;
    // Returns true if the link thread may not sleep for good, however long the rank's threads go
    // on: no thread arms it when they stop.
    virtual bool MustStay() const = 0;
    // Do what the same functions of DirectLinks do.
    virtual bool PrepareToSleep() = 0;
    virtual uint64_t NextTurnNs(uint64_t now_ns) const = 0;

   protected:
    ~Work() = default;
  };

  explicit LinkThread(Work* work) : work_(*work) {}
  ~LinkThread() { Stop(); }
  LinkThread(const LinkThread&) = delete;
  LinkThread& operator=(const LinkThread&) = delete;

  // Starts the thread. `wait_fd` is the links' descriptor. kSystem if the system starts no more
  // threads.
  Status Start(int wait_fd);
  // Ends and joins the thread, if it was started.
  void Stop();
  // Makes the thread look after the links from now on, perhaps after a pause of half a millisecond.
  void Arm();
  // Returns true while the thread waits for the links' descriptor, and so needs a call only for
  // work that waits for a turn.
  bool is_watching() const {
    return shm::Load(armed_, std::memory_order_seq_cst) == static_cast<uint32_t>(Armed::kWatches);
  }
  // Arms the thread without a pause, unless the rank's threads go on turning the links.
  void Call();

 private:
  enum class Armed : uint32_t { kNo, kDozes, kWatches, kWorks };

  void Run();
  bool Serve();
  bool Sleep(bool watches_links, uint64_t until_ns);
  bool Doze();
  bool Watch(uint64_t now_ns);
  void Become(Armed armed);
  bool DoRankThreadsTurn();
  bool Disarm();

  Work& work_;
  int wait_fd_ = -1;
  UniqueFd call_;  // eventfd: it was armed, or called, or is to stop
  uint32_t armed_ = 0;
  uint32_t stops_ = 0;
  uint64_t pause_ns_ = 0;  // these two are the thread's own
  uint32_t turns_ = 0;     // Work::Turns, when it looked last
  std::thread thread_;
};

}  // namespace ferry::client
