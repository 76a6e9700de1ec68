// A Slingshot NIC in memory, behind libfabric's own tables of functions: it does what the `cxi`
// provider documents about counters and deferred work, and nothing more.
//
// - 504 deferred operations at most; one more is refused, and noted, for a real NIC may do
// anything.
// - A counter is read as it was last asked for: reading it asks for a newer value.
// - A GPU's stores to a counter's page add to it or reset it. The pages lie in a file, as those of
//   the driver's; a counter that is closed leaves its page to the next one that is opened.
//
// Only Work, which is the NIC's own time, makes anything happen. Its only peer is itself. Memory
// may be registered by other threads meanwhile.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/unique_fd.h"
#include "transports/ofi/cxi_extension.h"
#include "transports/ofi/endpoint.h"

namespace ferry::transport {

class FakeCxi {
 public:
  static constexpr size_t kUsable = 504;
  static constexpr fi_addr_t kSelf = 7;

  // `keeps_pages`: its driver maps each page once, and never again, as Slingshot's does.
  explicit FakeCxi(bool keeps_pages = false);
  ~FakeCxi();
  FakeCxi(const FakeCxi&) = delete;
  FakeCxi& operator=(const FakeCxi&) = delete;

  // An Endpoint that is this NIC's; the NIC outlives it.
  std::unique_ptr<Endpoint> Open();

  // Reads the stores to the counters' pages, and carries out what is due, until nothing is.
  // Failures go to `on_error`, with the operation's context, as to a completion queue.
  void Work(const std::function<void(void*)>& on_error = {});

  size_t queued() const { return queue_.size(); }
  bool overrun() const { return overrun_; }
  size_t open_counters() const { return counters_.size(); }
  // Additions and resets by a CPU's calls, and those by stores to pages.
  uint64_t calls() const { return calls_; }
  uint64_t stores() const { return stores_; }
  // Returns true if some counter has the page at that place of the file.
  bool HasPage(uint64_t offset) const;
  // A lost operation fires and never ends, and nothing reports it.
  bool loses = false;
  // The version of the domain's extension that is there.
  std::string domain_ops_version = "dom_ops_v6";

 private:
  static constexpr uint64_t kUntouched = ~uint64_t{0};
  static constexpr uint64_t kPageBytes = 4096;

  struct Counter {
    fid_cntr fabric{};
    FakeCxi* nic = nullptr;
    uint64_t successes = 0;
    uint64_t failures = 0;
    uint64_t read_back = 0;  // what a read sees
    bool asked = false;
    int bound = 0;
    uint64_t number = 0;  // its page's, in the file
    uint64_t* page = nullptr;
  };
  struct Memory {
    fid_mr fabric{};
    FakeCxi* nic = nullptr;
    std::byte* base = nullptr;
    size_t bytes = 0;
    Counter* counter = nullptr;
    bool has_endpoint = false;
    bool enabled = false;
  };

  static Counter* CounterOf(fid* object) { return static_cast<Counter*>(object->context); }
  static Memory* MemoryOf(fid* object) { return static_cast<Memory*>(object->context); }

  // ---- The NIC's time

  static bool Take(uint64_t* word, uint64_t* value);
  bool MapPage(Counter* counter);

  int Doorbells();

  int Fire(const std::function<void(void*)>& on_error);

  bool Write(const fi_msg_rma& message);
  bool Add(const fi_msg_atomic& message);
  bool Store(uint64_t key, uint64_t offset, const void* from, size_t bytes);
  Memory* Find(uint64_t key, uint64_t offset, size_t bytes);

  // ---- libfabric's side

  void FillTables();

  static int Queue(fid* domain, int command, void* argument);
  static int OpenDomainOps(fid* domain, const char* name, uint64_t, void** ops, void*);
  static int OpenCounterOps(fid* counter, const char* name, uint64_t, void** ops, void*);
  static int OpenCounter(fid_domain* domain, fi_cntr_attr*, fid_cntr** counter, void*);
  static int CloseCounter(fid* object);
  static int Register(fid* domain, const void* base, size_t bytes, uint64_t, uint64_t, uint64_t key,
                      uint64_t, fid_mr** memory, void*);
  static int Deregister(fid* object);
  static int Bind(fid* object, fid* other, uint64_t flags);
  static int Enable(fid* object, int command, void*);

  fi_ops domain_ops_{}, endpoint_ops_{}, memory_ops_{}, counter_ops_{};
  fi_ops_domain domain_calls_{};
  fi_ops_mr memory_calls_{};
  fi_ops_cntr counter_calls_{};
  CxiCounterOps counter_extension_{};
  CxiDomainOps domain_extension_{};
  fid_domain domain_{};
  fid_ep endpoint_{};
  std::vector<std::unique_ptr<Counter>> counters_;
  std::mutex memory_mutex_;
  std::map<uint64_t, std::unique_ptr<Memory>> memories_;
  std::list<fi_deferred_work*> queue_;
  bool overrun_ = false;
  const bool keeps_pages_;
  UniqueFd pages_;
  uint64_t calls_ = 0;
  uint64_t stores_ = 0;
};

}  // namespace ferry::transport
