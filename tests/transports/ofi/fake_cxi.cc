#include "tests/transports/ofi/fake_cxi.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <rdma/fi_errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "shm/atomic.h"

namespace ferry::transport {

FakeCxi::FakeCxi(bool keeps_pages)
    : keeps_pages_(keeps_pages), pages_(memfd_create("cxi0", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  EXPECT_EQ(ftruncate(pages_.get(), 1024 * kPageBytes), 0);
  FillTables();
  domain_.fid = {FI_CLASS_DOMAIN, this, &domain_ops_};
  domain_.ops = &domain_calls_;
  domain_.mr = &memory_calls_;
  endpoint_.fid = {FI_CLASS_EP, this, &endpoint_ops_};
}

FakeCxi::~FakeCxi() {
  for (const auto& counter : counters_) {
    munmap(counter->page, kPageBytes);
  }
}

bool FakeCxi::HasPage(uint64_t offset) const {
  return std::ranges::any_of(
      counters_, [offset](const auto& counter) { return counter->number * kPageBytes == offset; });
}

// Where pages are kept, each has a file of its own, in which nothing can be written by mappings
// made later.
bool FakeCxi::MapPage(Counter* counter) {
  while (HasPage(counter->number * kPageBytes)) {
    ++counter->number;
  }
  if (keeps_pages_) {
    pages_.Reset(memfd_create("cxi0", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    counter->number = 0;
    if (ftruncate(pages_.get(), kPageBytes) != 0) {
      return false;
    }
  }
  void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, pages_.get(),
                          static_cast<off_t>(counter->number * kPageBytes));
  if (page == MAP_FAILED ||
      (keeps_pages_ && fcntl(pages_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0)) {
    return false;
  }
  counter->page = static_cast<uint64_t*>(page);
  std::fill_n(counter->page, kPageBytes / sizeof(uint64_t), kUntouched);
  return true;
}

std::unique_ptr<Endpoint> FakeCxi::Open() {
  auto endpoint = std::make_unique<Endpoint>();
  endpoint->info = AllocateInfo();
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

void FakeCxi::Work(const std::function<void(void*)>& on_error) {
  {
    const std::lock_guard lock(memory_mutex_);
    while (Doorbells() + Fire(on_error) > 0) {
    }
  }
  for (const auto& counter : counters_) {
    counter->read_back = counter->asked ? counter->successes : counter->read_back;
    counter->asked = false;
  }
}

bool FakeCxi::Take(uint64_t* word, uint64_t* value) {
  *value = shm::Exchange(*word, kUntouched, std::memory_order_acq_rel);
  return *value != kUntouched;
}

int FakeCxi::Doorbells() {
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
  stores_ += static_cast<uint64_t>(events);
  return events;
}

int FakeCxi::Fire(const std::function<void(void*)>& on_error) {
  for (auto next = queue_.begin(); next != queue_.end(); ++next) {
    fi_deferred_work* work = *next;
    if (CounterOf(&work->triggering_cntr->fid)->successes < work->threshold) {
      continue;
    }
    queue_.erase(next);
    if (loses) {
      return 1;
    }
    const bool is_write = work->op_type == FI_OP_WRITE;
    Counter* done = CounterOf(&work->completion_cntr->fid);
    const bool well = is_write ? Write(work->op.rma->msg) : Add(work->op.atomic->msg);
    (well ? done->successes : done->failures)++;
    if (!well && on_error) {
      on_error(&work->context);
    }
    return 1;
  }
  return 0;
}

bool FakeCxi::Write(const fi_msg_rma& message) {
  return message.addr == kSelf && Store(message.rma_iov[0].key, message.rma_iov[0].addr,
                                        message.msg_iov[0].iov_base, message.msg_iov[0].iov_len);
}

bool FakeCxi::Add(const fi_msg_atomic& message) {
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

bool FakeCxi::Store(uint64_t key, uint64_t offset, const void* from, size_t bytes) {
  Memory* memory = Find(key, offset, bytes);
  if (memory == nullptr) {
    return false;
  }
  if (bytes == sizeof(uint64_t) && offset % sizeof(uint64_t) == 0) {  // streams wait for such words
    uint64_t word = 0;
    std::memcpy(&word, from, sizeof(word));
    shm::StoreRelease(*reinterpret_cast<uint64_t*>(memory->base + offset), word);
  } else {
    std::memcpy(memory->base + offset, from, bytes);
  }
  if (memory->counter != nullptr) {
    memory->counter->successes++;
  }
  return true;
}

FakeCxi::Memory* FakeCxi::Find(uint64_t key, uint64_t offset, size_t bytes) {
  const auto found = memories_.find(key);
  const bool fits =
      found != memories_.end() && found->second->enabled && offset + bytes <= found->second->bytes;
  return fits ? found->second.get() : nullptr;
}

void FakeCxi::FillTables() {
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
    CounterOf(&counter->fid)->nic->calls_++;
    return 0;
  };
  counter_extension_.get_mmio_addr = [](fid* counter, void** address, size_t* bytes) {
    *address = CounterOf(counter)->page;
    *bytes = kPageBytes;
    return 0;
  };
  domain_extension_.get_dwq_depth = [](fid*, size_t* depth) {
    *depth = kUsable;
    return 0;
  };
}

int FakeCxi::Queue(fid* domain, int command, void* argument) {
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

int FakeCxi::OpenDomainOps(fid* domain, const char* name, uint64_t, void** ops, void*) {
  auto* nic = static_cast<FakeCxi*>(domain->context);
  *ops = &nic->domain_extension_;
  return name == nic->domain_ops_version ? 0 : -FI_EINVAL;
}

int FakeCxi::OpenCounterOps(fid* counter, const char* name, uint64_t, void** ops, void*) {
  *ops = &CounterOf(counter)->nic->counter_extension_;
  return std::string(name) == "cxi_counter_ops" ? 0 : -FI_EINVAL;
}

int FakeCxi::OpenCounter(fid_domain* domain, fi_cntr_attr*, fid_cntr** counter, void*) {
  auto* nic = static_cast<FakeCxi*>(domain->fid.context);
  auto made = std::make_unique<Counter>();
  made->nic = nic;
  if (!nic->MapPage(made.get())) {
    return -FI_ENOMEM;
  }
  made->fabric.fid = {FI_CLASS_CNTR, made.get(), &nic->counter_ops_};
  made->fabric.ops = &nic->counter_calls_;
  *counter = &made->fabric;
  nic->counters_.push_back(std::move(made));
  return 0;
}

int FakeCxi::CloseCounter(fid* object) {
  Counter* counter = CounterOf(object);
  FakeCxi* nic = counter->nic;
  const std::lock_guard lock(nic->memory_mutex_);
  if (counter->bound > 0) {
    return -FI_EBUSY;
  }
  std::erase_if(nic->queue_, [counter](const fi_deferred_work* work) {
    return work->triggering_cntr == &counter->fabric;
  });
  munmap(counter->page, kPageBytes);
  std::erase_if(nic->counters_, [counter](const auto& one) { return one.get() == counter; });
  return 0;
}

int FakeCxi::Register(fid* domain, const void* base, size_t bytes, uint64_t, uint64_t, uint64_t key,
                      uint64_t, fid_mr** memory, void*) {
  auto* nic = static_cast<FakeCxi*>(domain->context);
  auto made = std::make_unique<Memory>();
  made->nic = nic;
  made->base = static_cast<std::byte*>(const_cast<void*>(base));
  made->bytes = bytes;
  made->fabric.fid = {FI_CLASS_MR, made.get(), &nic->memory_ops_};
  made->fabric.key = key;
  const std::lock_guard lock(nic->memory_mutex_);
  *memory = &made->fabric;
  nic->memories_[key] = std::move(made);
  return 0;
}

int FakeCxi::Deregister(fid* object) {
  Memory* memory = MemoryOf(object);
  const std::lock_guard lock(memory->nic->memory_mutex_);
  if (memory->counter != nullptr) {
    memory->counter->bound--;
  }
  memory->nic->memories_.erase(memory->fabric.key);
  return 0;
}

int FakeCxi::Bind(fid* object, fid* other, uint64_t flags) {
  Memory* memory = MemoryOf(object);
  const std::lock_guard lock(memory->nic->memory_mutex_);
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

int FakeCxi::Enable(fid* object, int command, void*) {
  Memory* memory = MemoryOf(object);
  const std::lock_guard lock(memory->nic->memory_mutex_);
  memory->enabled = command == FI_ENABLE && memory->has_endpoint;
  return memory->enabled ? 0 : -FI_EINVAL;
}

}  // namespace ferry::transport
