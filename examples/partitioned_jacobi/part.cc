#include "examples/partitioned_jacobi/part.h"

#include <algorithm>
#include <atomic>

#include "ferry/device/emulated.h"
#include "ferry/ferry.hpp"

namespace partitioned_jacobi {
namespace {

constexpr ferry_device_u32 kGroupSize = 1;  // emulated threads that meet cost more than they save
constexpr double kHot = 1;
constexpr int kDevice = 0;

// The side at which a neighbour has this rank.
constexpr int OppositeOf(int side) { return side ^ 1; }

uint64_t EdgeTiles(const heat_shape& shape, int side) {
  return side == HEAT_ABOVE || side == HEAT_BELOW ? shape.tiles_across : shape.tiles_down;
}
uint64_t EdgeCells(const heat_shape& shape, int side) {
  return side == HEAT_ABOVE || side == HEAT_BELOW ? shape.tile_width : shape.tile_height;
}

}  // namespace

struct Part::Work {
  heat_shape shape;
  double* cells;
  ferry_device_u64 from;
  const heat_side* arrived;
  const heat_side* leaving;
  std::atomic<int> status = MPIX_DEVICE_SUCCESS;

  static void Run(void* argument) {
    Work& work = *static_cast<Work*>(argument);
    const ferry::device::Shape launch = {work.shape.tiles_across * work.shape.tiles_down,
                                         kGroupSize};
    ferry::device::Launch(launch, [&] {
      const int status = heat_step(work.shape, work.cells, work.from, work.arrived, work.leaving);
      if (status != MPIX_DEVICE_SUCCESS) {
        work.status = status;
      }
    });
  }
};

// ---- Making and freeing ------------------------------------------------------------------------

Part::Part(const Layout& layout, int rank)
    : layout_(layout),
      rank_(rank),
      cells_(2 * heat_cell_count(layout.shape), FERRY_MEMORY_DEVICE, kDevice),
      sides_(size_t{2} * 2 * HEAT_SIDES, FERRY_MEMORY_DEVICE, kDevice),
      stream_(kDevice) {
  FindNeighbours();
  // A unit for each tile's edge, which else would wait for those of its neighbours.
  MPI_Info units = MPI_INFO_NULL;
  MPI_Info_create(&units);
  MPI_Info_set(units, "ferry_partitioned_min_bytes", "1");
  MakeExchanges(0, units);
  MakeExchanges(1, units);
  MPI_Info_free(&units);
  // Afterwards: it waits for the other side's init.
  for (const int parity : {0, 1}) {
    size_t at = 0;
    for (int side = 0; side < HEAT_SIDES; ++side) {
      if (neighbours_[static_cast<size_t>(side)] != MPI_PROC_NULL) {
        Exchange& exchange = exchanges_[static_cast<size_t>(parity)][at++];
        MPIX_Prequest_create(exchange.partitioned_send, kDevice, MPI_INFO_NULL, &exchange.prequest);
        const heat_side known = {reinterpret_cast<uintptr_t>(exchange.in.data()),
                                 reinterpret_cast<uintptr_t>(exchange.out.data()), 0};
        const size_t first = static_cast<size_t>(parity) * 2 * HEAT_SIDES;
        sides_.data()[first + static_cast<size_t>(side)] = known;
        heat_side& with = sides_.data()[first + HEAT_SIDES + static_cast<size_t>(side)];
        with = known;
        with.request = reinterpret_cast<uintptr_t>(exchange.prequest);
      }
    }
    CollectRequests(parity);
  }
}

Part::~Part() {
  stream_.Synchronize();
  for (std::vector<Exchange>& exchanges : exchanges_) {
    for (Exchange& exchange : exchanges) {
      MPIX_Prequest_free(&exchange.prequest);
      for (MPI_Request* const request : {&exchange.partitioned_send, &exchange.partitioned_receive,
                                         &exchange.plain_send, &exchange.plain_receive}) {
        MPI_Request_free(request);
      }
    }
  }
}

void Part::FindNeighbours() {
  const int across = rank_ % layout_.ranks[1];
  const int down = rank_ / layout_.ranks[1];
  neighbours_.fill(MPI_PROC_NULL);
  if (down > 0) {
    neighbours_[HEAT_ABOVE] = rank_ - layout_.ranks[1];
  }
  if (down + 1 < layout_.ranks[0]) {
    neighbours_[HEAT_BELOW] = rank_ + layout_.ranks[1];
  }
  if (across > 0) {
    neighbours_[HEAT_LEFT] = rank_ - 1;
  }
  if (across + 1 < layout_.ranks[1]) {
    neighbours_[HEAT_RIGHT] = rank_ + 1;
  }
}

// Tags name the side of the sender. A partition is the edge of a tile.
void Part::MakeExchanges(int parity, MPI_Info units) {
  for (int side = 0; side < HEAT_SIDES; ++side) {
    const int neighbour = neighbours_[static_cast<size_t>(side)];
    if (neighbour == MPI_PROC_NULL) {
      continue;
    }
    const auto tiles = static_cast<int>(EdgeTiles(layout_.shape, side));
    const auto cells = static_cast<MPI_Count>(EdgeCells(layout_.shape, side));
    const size_t all = static_cast<size_t>(tiles) * static_cast<size_t>(cells);
    Exchange exchange{ferry::Buffer<double>(all, FERRY_MEMORY_DEVICE, kDevice),
                      ferry::Buffer<double>(all, FERRY_MEMORY_DEVICE, kDevice)};
    double* const in = exchange.in.data();
    double* const out = exchange.out.data();
    MPI_Psend_init(out, tiles, cells, MPI_DOUBLE, neighbour, side, MPI_COMM_WORLD, units,
                   &exchange.partitioned_send);
    MPI_Precv_init(in, tiles, cells, MPI_DOUBLE, neighbour, OppositeOf(side), MPI_COMM_WORLD,
                   MPI_INFO_NULL, &exchange.partitioned_receive);
    MPI_Send_init(out, static_cast<int>(all), MPI_DOUBLE, neighbour, side, MPI_COMM_WORLD,
                  &exchange.plain_send);
    MPI_Recv_init(in, static_cast<int>(all), MPI_DOUBLE, neighbour, OppositeOf(side),
                  MPI_COMM_WORLD, &exchange.plain_receive);
    exchanges_[static_cast<size_t>(parity)].push_back(std::move(exchange));
  }
}

void Part::CollectRequests(int parity) {
  Requests& requests = requests_[static_cast<size_t>(parity)];
  const std::vector<Exchange>& exchanges = exchanges_[static_cast<size_t>(parity)];
  for (const Exchange& exchange : exchanges) {
    requests.partitioned.push_back(exchange.partitioned_send);
    requests.plain.push_back(exchange.plain_send);
  }
  for (const Exchange& exchange : exchanges) {
    requests.partitioned.push_back(exchange.partitioned_receive);
    requests.plain.push_back(exchange.plain_receive);
  }
  requests.sends = static_cast<int>(exchanges.size());
}

// ---- Steps -------------------------------------------------------------------------------------

const heat_side* Part::SidesOf(int parity, bool is_partitioned) const {
  return sides_.data() + static_cast<size_t>(2 * parity + (is_partitioned ? 1 : 0)) * HEAT_SIDES;
}

void Part::Begin() {
  stream_.Synchronize();
  std::fill_n(cells_.data(), cells_.size(), 0.0);
  if (neighbours_[HEAT_ABOVE] == MPI_PROC_NULL) {
    for (const uint64_t buffer : {0, 1}) {
      std::fill_n(cells_.data() + buffer * heat_cell_count(layout_.shape),
                  heat_width(layout_.shape) + 2, kHot);
    }
  }
  for (const std::vector<Exchange>& exchanges : exchanges_) {
    for (const Exchange& exchange : exchanges) {
      std::fill_n(exchange.in.data(), exchange.in.size(), 0.0);
    }
  }
  steps_taken_ = 0;
}

// Step n reads the edges that came in step n - 1, and sends by the exchanges of its own parity.
void Part::Launch(int step, bool is_partitioned) {
  Work& work = *steps_[static_cast<size_t>(step)];
  work.arrived = SidesOf((step + 1) % 2, is_partitioned);
  work.leaving = SidesOf(step % 2, is_partitioned);
  stream_.Launch(Work::Run, &work);
}

void Part::Prepare(int steps) {
  steps_.clear();
  for (int step = 0; step < steps; ++step) {
    steps_.push_back(std::unique_ptr<Work>(new Work{
        layout_.shape, cells_.data(), static_cast<ferry_device_u64>(step % 2), nullptr, nullptr}));
  }
  steps_taken_ = steps;
}

// The host does not wait for the stream: when the sends are over, all groups have readied their
// edges, and so have read those of the neighbours. Nor for the neighbours' starts: an edge that is
// ready sooner than its neighbour leaves once that has started, by a host.
void Part::StepsWithPartitions(int steps) {
  Prepare(steps);
  for (int step = 0; step < steps; ++step) {
    Requests& requests = requests_[static_cast<size_t>(step % 2)];
    const auto count = static_cast<int>(requests.partitioned.size());
    MPI_Startall(count, requests.partitioned.data());
    Launch(step, true);
    MPI_Waitall(count, requests.partitioned.data(), MPI_STATUSES_IGNORE);
  }
  stream_.Synchronize();
}

void Part::StepsAfterSynchronising(int steps) {
  Prepare(steps);
  for (int step = 0; step < steps; ++step) {
    Requests& requests = requests_[static_cast<size_t>(step % 2)];
    const auto count = static_cast<int>(requests.plain.size());
    MPI_Startall(count - requests.sends, requests.plain.data() + requests.sends);
    Launch(step, false);
    stream_.Synchronize();
    MPI_Startall(requests.sends, requests.plain.data());
    MPI_Waitall(count, requests.plain.data(), MPI_STATUSES_IGNORE);
  }
}

// All steps are enqueued before the first has to have begun.
void Part::StepsOnQueue(int steps) {
  Prepare(steps);
  MPIX_Queue queue = MPIX_QUEUE_NULL;
  MPIX_Queue_init(&queue, MPIX_QUEUE_FERRY, stream_.address());
  for (int step = 0; step < steps; ++step) {
    Requests& requests = requests_[static_cast<size_t>(step % 2)];
    const auto count = static_cast<int>(requests.partitioned.size());
    MPIX_Enqueue_startall(queue, count, requests.partitioned.data());
    MPIX_Enqueue_pbuf_prepare_all(queue, requests.sends, requests.partitioned.data());
    Launch(step, true);
    MPIX_Enqueue_waitall(queue, count, requests.partitioned.data());
  }
  MPIX_Queue_wait(queue);
  MPIX_Queue_free(&queue);
}

std::vector<double> Part::Cells() {
  stream_.Synchronize();
  const bool has_failed = std::any_of(
      steps_.begin(), steps_.end(),
      [](const std::unique_ptr<Work>& work) { return work->status != MPIX_DEVICE_SUCCESS; });
  std::vector<double> cells;
  double* const buffer =
      cells_.data() + static_cast<uint64_t>(steps_taken_ % 2) * heat_cell_count(layout_.shape);
  for (uint64_t row = 1; !has_failed && row <= heat_height(layout_.shape); ++row) {
    const double* const first = heat_cell(layout_.shape, buffer, row, 1);
    cells.insert(cells.end(), first, first + heat_width(layout_.shape));
  }
  return cells;
}

}  // namespace partitioned_jacobi
