#include "transports/ofi/ofi_counters.h"

#include <rdma/fi_errno.h>

#include <string>
#include <string_view>
#include <utility>

#include "transports/ofi/cxi_extension.h"

namespace ferry::transport {
namespace {

uint64_t* At(void* page, size_t offset) {
  return reinterpret_cast<uint64_t*>(static_cast<std::byte*>(page) + offset);
}

CounterDoorbell DoorbellOf(const CxiCounterOps& ops, fid_cntr* counter) {
  void* page = nullptr;
  size_t bytes = 0;
  if (ops.get_mmio_addr(&counter->fid, &page, &bytes) != 0 || page == nullptr ||
      bytes < kCxiLeastMmioBytes) {
    return {};
  }
  return {.page = page,
          .page_bytes = bytes,
          .add = At(page, kCxiAddOffset),
          .add_errors = At(page, kCxiAddErrorsOffset),
          .reset = At(page, kCxiResetOffset),
          .reset_errors = At(page, kCxiResetErrorsOffset)};
}

}  // namespace

OfiCounters::OfiCounters(const Endpoint* endpoint)
    : endpoint_(endpoint),
      is_narrow_(std::string_view(endpoint->info->fabric_attr->prov_name) == "sockets") {}

StatusOr<NicCounter> OfiCounters::Open() {
  fi_cntr_attr attributes{};
  attributes.events = FI_CNTR_EVENTS_COMP;
  attributes.wait_obj = FI_WAIT_NONE;
  fid_cntr* counter = nullptr;
  const int error = fi_cntr_open(endpoint_->domain.get(), &attributes, &counter, nullptr);
  if (error != 0) {
    return SetUpError(error, "fi_cntr_open");
  }
  FidPtr<fid_cntr> owner(counter);
  const std::lock_guard lock(mutex_);
  const NicCounter id = counters_.Insert();
  CounterState* const state = counters_.Find(id);
  state->id = id;
  state->counter = std::move(owner);
  if (const CxiCounterOps* ops = FindCxiCounterOps(counter); ops != nullptr) {
    state->doorbell = DoorbellOf(*ops, counter);
  }
  return id;
}

void OfiCounters::Add(CounterState* counter, uint64_t n) {
  counter->added += n;
  fi_cntr_add(counter->counter.get(), n);
}

uint64_t OfiCounters::Read(CounterState* counter) {
  const uint64_t now = fi_cntr_read(counter->counter.get());
  counter->value = is_narrow_ ? counter->value + static_cast<uint32_t>(now - counter->value) : now;
  return counter->value;
}

CounterState* OfiCounters::Find(NicCounter id) {
  CounterState* state = counters_.Find(id);
  return state == nullptr || state->closing ? nullptr : state;
}

StatusOr<fid_cntr*> OfiCounters::Bindable(NicCounter id) {
  const std::lock_guard lock(mutex_);
  CounterState* state = counters_.Find(id);
  if (state == nullptr) {
    return Status(ErrorCode::kNotFound, "PrepareTarget: no such counter");
  }
  return state->counter.get();
}

bool OfiCounters::TryClose(CounterState* counter) {
  if (fi_close(&counter->counter->fid) != 0) {
    return false;
  }
  (void)counter->counter.release();
  return true;
}

void OfiCounters::Erase(CounterState* counter) {
  const std::lock_guard lock(mutex_);
  counters_.Erase(counter->id);
}

}  // namespace ferry::transport
