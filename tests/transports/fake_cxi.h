// A Slingshot NIC in memory, behind libfabric's own tables of functions: what the `cxi` provider
// documents of counters and deferred work, and nothing more.
//
// - 504 deferred operations at most; one more is refused, and noted, for a real NIC may do
// anything.
// - A counter is read as it was last written back: reading it asks for a newer value.
// - A GPU's stores to a counter's page add to it or reset it.
// - A write-back word that the application has set is written after operations that ask for it.
//
// Nothing happens but in Work, which is the NIC's own time. One peer: itself.
#pragma once

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_trigger.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transports/ofi/cxi_extension.h"
#include "transports/ofi/endpoint.h"

namespace ferry::transport {

class FakeCxi {
 public:
  static constexpr size_t kUsable = 504;
  static constexpr fi_addr_t kSelf = 7;

  FakeCxi() {
    FillTables();
    domain_.fid = {FI_CLASS_DOMAIN, this, &domain_ops_};
    domain_.ops = &domain_calls_;
    domain_.mr = &memory_calls_;
    endpoint_.fid = {FI_CLASS_EP, this, &endpoint_ops_};
  }

  // An Endpoint that is this NIC's; the NIC outlives it.
  std::unique_ptr<Endpoint> Open() {
    auto endpoint = std::make_unique<Endpoint>();
    endpoint->info.reset(fi_allocinfo());
    endpoint->info->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_TRIGGER | FI_RMA_EVENT;
    endpoint->info->fabric_attr->prov_name = strdup("cxi");
    endpoint->info->domain_attr->mr_mode = FI_MR_ENDPOINT | FI_MR_ALLOCATED;
    endpoint->info->domain_attr->mr_key_size = sizeof(uint64_t);
    endpoint->info->ep_attr->max_msg_size = 1 << 30;
    endpoint->domain.reset(&domain_);
    endpoint->endpoint.reset(&endpoint_);
    endpoint->description.provider = "cxi";
    endpoint->description.domain = "cxi0";
    return endpoint;
  }

  // Takes in what was stored to the counters' pages, and carries out what is due, until nothing is.
  // Failures go to `on_error`, with the operation's context, as to a completion queue.
  void Work(const std::function<void(void*)>& on_error = {}) {
    while (Doorbells() + Fire(on_error) > 0) {
    }
    for (const auto& counter : counters_) {
      counter->read_back = counter->asked ? counter->successes : counter->read_back;
      counter->asked = false;
    }
  }

  size_t queued() const { return queue_.size(); }
  bool overrun() const { return overrun_; }
  size_t open_counters() const { return counters_.size(); }
  // The version of the domain's extension that is there.
  std::string domain_ops_version = "dom_ops_v6";

 private:
  static constexpr uint64_t kUntouched = ~uint64_t{0};

  struct Counter {
    fid_cntr fabric{};
    FakeCxi* nic = nullptr;
    uint64_t successes = 0;
    uint64_t failures = 0;
    uint64_t read_back = 0;  // what a read sees
    bool asked = false;
    int bound = 0;
    uint64_t* write_back = nullptr;
    alignas(64) std::array<uint64_t, 512> page;
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

  static bool Take(uint64_t* word, uint64_t* value) {
    *value = *word;
    *word = kUntouched;
    return *value != kUntouched;
  }

  int Doorbells() {
    int events = 0;
    for (const auto& counter : counters_) {
      uint64_t value = 0;
      if (Take(&counter->page[0], &value)) {
        counter->successes += value, events++;
      }
      if (Take(&counter->page[8], &value)) {
        counter->failures += value, events++;
      }
      if (Take(&counter->page[16], &value)) {
        counter->successes = 0, events++;
      }
      if (Take(&counter->page[24], &value)) {
        counter->failures = 0, events++;
      }
    }
    return events;
  }

  int Fire(const std::function<void(void*)>& on_error) {
    for (auto next = queue_.begin(); next != queue_.end(); ++next) {
      fi_deferred_work* work = *next;
      if (CounterOf(&work->triggering_cntr->fid)->successes < work->threshold) {
        continue;
      }
      queue_.erase(next);
      const bool is_write = work->op_type == FI_OP_WRITE;
      const uint64_t flags = is_write ? work->op.rma->flags : work->op.atomic->flags;
      Counter* done = CounterOf(&work->completion_cntr->fid);
      const bool well = is_write ? Write(work->op.rma->msg) : Add(work->op.atomic->msg);
      (well ? done->successes : done->failures)++;
      if ((flags & kCxiWriteBack) != 0 && done->write_back != nullptr) {
        *done->write_back = kCxiWritten | done->failures << 48 | done->successes;
      }
      if (!well && on_error) {
        on_error(&work->context);
      }
      return 1;
    }
    return 0;
  }

  bool Write(const fi_msg_rma& message) {
    return message.addr == kSelf && Store(message.rma_iov[0].key, message.rma_iov[0].addr,
                                          message.msg_iov[0].iov_base, message.msg_iov[0].iov_len);
  }
  bool Add(const fi_msg_atomic& message) {
    Memory* memory = Find(message.rma_iov[0].key, message.rma_iov[0].addr, sizeof(uint64_t));
    if (memory == nullptr || message.addr != kSelf || message.op != FI_SUM ||
        message.datatype != FI_UINT64) {
      return false;
    }
    uint64_t sum = 0;
    std::memcpy(&sum, memory->base + message.rma_iov[0].addr, sizeof(sum));
    sum += *static_cast<uint64_t*>(message.msg_iov[0].addr);
    return Store(message.rma_iov[0].key, message.rma_iov[0].addr, &sum, sizeof(sum));
  }
  bool Store(uint64_t key, uint64_t offset, const void* from, size_t bytes) {
    Memory* memory = Find(key, offset, bytes);
    if (memory == nullptr) {
      return false;
    }
    std::memcpy(memory->base + offset, from, bytes);
    if (memory->counter != nullptr) {
      memory->counter->successes++;
    }
    return true;
  }
  Memory* Find(uint64_t key, uint64_t offset, size_t bytes) {
    const auto found = memories_.find(key);
    const bool fits = found != memories_.end() && found->second->enabled &&
                      offset + bytes <= found->second->bytes;
    return fits ? found->second.get() : nullptr;
  }

  // ---- libfabric's side

  void FillTables() {
    domain_ops_.size = sizeof(domain_ops_);
    domain_ops_.close = [](fid*) { return 0; };
    domain_ops_.control = &FakeCxi::Queue;
    domain_ops_.ops_open = &FakeCxi::OpenDomainOps;
    domain_calls_.size = sizeof(domain_calls_);
    domain_calls_.cntr_open = &FakeCxi::OpenCounter;
    memory_calls_.size = sizeof(memory_calls_);
    memory_calls_.reg = &FakeCxi::Register;
    endpoint_ops_.size = sizeof(endpoint_ops_);
    endpoint_ops_.close = [](fid*) { return 0; };
    memory_ops_.size = sizeof(memory_ops_);
    memory_ops_.close = &FakeCxi::Deregister;
    memory_ops_.bind = &FakeCxi::Bind;
    memory_ops_.control = &FakeCxi::Enable;
    counter_ops_.size = sizeof(counter_ops_);
    counter_ops_.close = &FakeCxi::CloseCounter;
    counter_ops_.ops_open = &FakeCxi::OpenCounterOps;
    counter_calls_.size = sizeof(counter_calls_);
    counter_calls_.read = [](fid_cntr* counter) {
      CounterOf(&counter->fid)->asked = true;
      return CounterOf(&counter->fid)->read_back;
    };
    counter_calls_.add = [](fid_cntr* counter, uint64_t value) {
      CounterOf(&counter->fid)->successes += value;
      return 0;
    };
    counter_extension_.set_wb_buffer = [](fid* counter, void* buffer, size_t bytes) {
      if (buffer == nullptr || bytes < sizeof(uint64_t)) {
        return -FI_EINVAL;
      }
      CounterOf(counter)->write_back = static_cast<uint64_t*>(buffer);
      return 0;
    };
    counter_extension_.get_mmio_addr = [](fid* counter, void** address, size_t* bytes) {
      *address = CounterOf(counter)->page.data();
      *bytes = sizeof(CounterOf(counter)->page);
      return 0;
    };
    domain_extension_.get_dwq_depth = [](fid*, size_t* depth) {
      *depth = kUsable;
      return 0;
    };
  }

  static int Queue(fid* domain, int command, void* argument) {
    auto* nic = static_cast<FakeCxi*>(domain->context);
    auto* work = static_cast<fi_deferred_work*>(argument);
    if (command != FI_QUEUE_WORK) {
      return -FI_ENOSYS;
    }
    const void* context =
        work->op_type == FI_OP_WRITE ? work->op.rma->msg.context : work->op.atomic->msg.context;
    if (context != &work->context || work->completion_cntr == nullptr) {
      return -FI_EINVAL;
    }
    if (nic->queue_.size() >= kUsable) {
      nic->overrun_ = true;
      return -FI_ENOSPC;
    }
    nic->queue_.push_back(work);
    return 0;
  }
  static int OpenDomainOps(fid* domain, const char* name, uint64_t, void** ops, void*) {
    auto* nic = static_cast<FakeCxi*>(domain->context);
    *ops = &nic->domain_extension_;
    return name == nic->domain_ops_version ? 0 : -FI_EINVAL;
  }
  static int OpenCounterOps(fid* counter, const char* name, uint64_t, void** ops, void*) {
    *ops = &CounterOf(counter)->nic->counter_extension_;
    return std::string(name) == "cxi_counter_ops" ? 0 : -FI_EINVAL;
  }
  static int OpenCounter(fid_domain* domain, fi_cntr_attr*, fid_cntr** counter, void*) {
    auto* nic = static_cast<FakeCxi*>(domain->fid.context);
    auto made = std::make_unique<Counter>();
    made->nic = nic;
    made->page.fill(kUntouched);
    made->fabric.fid = {FI_CLASS_CNTR, made.get(), &nic->counter_ops_};
    made->fabric.ops = &nic->counter_calls_;
    *counter = &made->fabric;
    nic->counters_.push_back(std::move(made));
    return 0;
  }
  static int CloseCounter(fid* object) {
    Counter* counter = CounterOf(object);
    if (counter->bound > 0) {
      return -FI_EBUSY;
    }
    FakeCxi* nic = counter->nic;
    std::erase_if(nic->queue_, [counter](const fi_deferred_work* work) {
      return work->triggering_cntr == &counter->fabric;
    });
    std::erase_if(nic->counters_, [counter](const auto& one) { return one.get() == counter; });
    return 0;
  }
  static int Register(fid* domain, const void* base, size_t bytes, uint64_t, uint64_t, uint64_t key,
                      uint64_t, fid_mr** memory, void*) {
    auto* nic = static_cast<FakeCxi*>(domain->context);
    auto made = std::make_unique<Memory>();
    made->nic = nic;
    made->base = static_cast<std::byte*>(const_cast<void*>(base));
    made->bytes = bytes;
    made->fabric.fid = {FI_CLASS_MR, made.get(), &nic->memory_ops_};
    made->fabric.key = key;
    *memory = &made->fabric;
    nic->memories_[key] = std::move(made);
    return 0;
  }
  static int Deregister(fid* object) {
    Memory* memory = MemoryOf(object);
    if (memory->counter != nullptr) {
      memory->counter->bound--;
    }
    memory->nic->memories_.erase(memory->fabric.key);
    return 0;
  }
  static int Bind(fid* object, fid* other, uint64_t flags) {
    Memory* memory = MemoryOf(object);
    if (memory->enabled) {
      return -FI_EINVAL;
    }
    if (other->fclass == FI_CLASS_CNTR && flags == FI_REMOTE_WRITE) {
      memory->counter = CounterOf(other);
      memory->counter->bound++;
      return 0;
    }
    memory->has_endpoint = other->fclass == FI_CLASS_EP;
    return memory->has_endpoint ? 0 : -FI_EINVAL;
  }
  static int Enable(fid* object, int command, void*) {
    Memory* memory = MemoryOf(object);
    memory->enabled = command == FI_ENABLE && memory->has_endpoint;
    return memory->enabled ? 0 : -FI_EINVAL;
  }

  fi_ops domain_ops_{}, endpoint_ops_{}, memory_ops_{}, counter_ops_{};
  fi_ops_domain domain_calls_{};
  fi_ops_mr memory_calls_{};
  fi_ops_cntr counter_calls_{};
  CxiCounterOps counter_extension_{};
  CxiDomainOps domain_extension_{};
  fid_domain domain_{};
  fid_ep endpoint_{};
  std::vector<std::unique_ptr<Counter>> counters_;
  std::map<uint64_t, std::unique_ptr<Memory>> memories_;
  std::list<fi_deferred_work*> queue_;
  bool overrun_ = false;
};

}  // namespace ferry::transport
