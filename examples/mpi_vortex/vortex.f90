! Vortices of Taylor and Green that a steady wind carries along: an incompressible flow in two
! dimensions, by vorticity and stream function, on a Cartesian grid of ranks.
!
! Second order in space and time: central differences, the midpoint rule, and a stream function by
! conjugate gradients. The flow has an exact solution. The program solves on two grids, and is
! content if the error of the finer one is a quarter of the other's, within a tenth.
program vortex
  use mpi
  implicit none
  integer, parameter :: real8 = kind(1d0)
  real(real8), parameter :: pi = acos(-1d0), viscosity = 0.05d0, wind_x = 1d0, wind_y = 0.5d0
  real(real8), parameter :: end_time = 0.5d0
  integer :: grid, rank, ranks, dims(2), place(2), ierr
  integer :: west, east, south, north, row_type
  integer :: nx, ny            ! this rank's points
  real(real8) :: h, errors(2)  ! distance of points

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
  dims = 0
  call MPI_Dims_create(ranks, 2, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, [.true., .true.], .true., grid, ierr)
  call MPI_Comm_rank(grid, rank, ierr)
  call MPI_Cart_coords(grid, rank, 2, place, ierr)
  call MPI_Cart_shift(grid, 0, 1, west, east, ierr)
  call MPI_Cart_shift(grid, 1, 1, south, north, ierr)

  errors = [error_on(32), error_on(64)]
  if (rank == 0) then
    print '(a,2es10.3,a,f6.3)', 'errors on the two grids', errors, ', ratio', errors(1) / errors(2)
    if (abs(errors(1) / errors(2) - 4) < 0.4d0) print '(a)', 'second order, as it should be'
  end if
  call MPI_Finalize(ierr)

contains

  ! The greatest error at the end, on a grid of `points` in each direction at least.
  real(real8) function error_on(points)
    integer, intent(in) :: points
    real(real8), allocatable :: w(:, :), half(:, :), stream(:, :)
    real(real8) :: dt, worst
    integer :: steps, step
    nx = (points + dims(1) - 1) / dims(1)
    ny = (points + dims(2) - 1) / dims(2)
    h = 2 * pi / points
    if (nx * dims(1) /= points .or. ny * dims(2) /= points) then
      if (rank == 0) print '(a)', 'the numbers of ranks in a row and in a column must divide 32'
      call MPI_Abort(MPI_COMM_WORLD, 1, ierr)
    end if
    call MPI_Type_vector(ny, 1, nx + 2, MPI_DOUBLE_PRECISION, row_type, ierr)
    call MPI_Type_commit(row_type, ierr)
    allocate (w(0:nx + 1, 0:ny + 1), half(0:nx + 1, 0:ny + 1), stream(0:nx + 1, 0:ny + 1))
    steps = points / 2
    dt = end_time / steps
    w = exact(0d0)
    stream = 0
    do step = 1, steps
      half = w
      half(1:nx, 1:ny) = w(1:nx, 1:ny) + dt / 2 * slope(w, stream)
      w(1:nx, 1:ny) = w(1:nx, 1:ny) + dt * slope(half, stream)
    end do
    half = exact(end_time)
    worst = maxval(abs(w(1:nx, 1:ny) - half(1:nx, 1:ny)))
    call MPI_Allreduce(worst, error_on, 1, MPI_DOUBLE_PRECISION, MPI_MAX, grid, ierr)
    call MPI_Type_free(row_type, ierr)
  end function

  ! The vorticity is twice the stream function, drifts with the wind, and decays.
  function exact(time) result(w)
    real(real8), intent(in) :: time
    real(real8) :: w(0:nx + 1, 0:ny + 1), x, y
    integer :: i, j
    do j = 0, ny + 1
      y = (place(2) * ny + j) * h - wind_y * time
      do i = 0, nx + 1
        x = (place(1) * nx + i) * h - wind_x * time
        w(i, j) = 2 * cos(x) * cos(y) * exp(-2 * viscosity * time)
      end do
    end do
  end function

  ! Fills the border with the neighbours' points. Columns lie together in memory, rows do not.
  subroutine exchange(a)
    real(real8), intent(inout) :: a(0:nx + 1, 0:ny + 1)
    integer :: none(MPI_STATUS_SIZE)
    call MPI_Sendrecv(a(1, ny), nx, MPI_DOUBLE_PRECISION, north, 1, a(1, 0), nx, &
                      MPI_DOUBLE_PRECISION, south, 1, grid, none, ierr)
    call MPI_Sendrecv(a(1, 1), nx, MPI_DOUBLE_PRECISION, south, 2, a(1, ny + 1), nx, &
                      MPI_DOUBLE_PRECISION, north, 2, grid, none, ierr)
    call MPI_Sendrecv(a(nx, 1), 1, row_type, east, 3, a(0, 1), 1, row_type, west, 3, grid, &
                      MPI_STATUS_IGNORE, ierr)
    call MPI_Sendrecv(a(1, 1), 1, row_type, west, 4, a(nx + 1, 1), 1, row_type, east, 4, grid, &
                      MPI_STATUS_IGNORE, ierr)
  end subroutine

  function laplacian(a) result(sum)
    real(real8), intent(inout) :: a(0:nx + 1, 0:ny + 1)
    real(real8) :: sum(nx, ny)
    call exchange(a)
    sum = (a(0:nx - 1, 1:ny) + a(2:nx + 1, 1:ny) + a(1:nx, 0:ny - 1) + a(1:nx, 2:ny + 1) &
           - 4 * a(1:nx, 1:ny)) / h**2
  end function

  real(real8) function product_of(a, b)
    real(real8), intent(in) :: a(nx, ny), b(nx, ny)
    product_of = sum(a * b)
    call MPI_Allreduce(MPI_IN_PLACE, product_of, 1, MPI_DOUBLE_PRECISION, MPI_SUM, grid, ierr)
  end function

  ! Solves -laplacian(stream) = w by conjugate gradients, beginning with the stream that is there.
  subroutine solve(w, stream)
    real(real8), intent(in) :: w(0:nx + 1, 0:ny + 1)
    real(real8), intent(inout) :: stream(0:nx + 1, 0:ny + 1)
    real(real8) :: direction(0:nx + 1, 0:ny + 1), rest(nx, ny), image(nx, ny)
    real(real8) :: size, before, first
    rest = w(1:nx, 1:ny) + laplacian(stream)
    direction = 0
    direction(1:nx, 1:ny) = rest
    size = product_of(rest, rest)
    first = product_of(w(1:nx, 1:ny), w(1:nx, 1:ny))
    do while (size > 1d-20 * first)
      image = -laplacian(direction)
      before = size / product_of(direction(1:nx, 1:ny), image)
      stream(1:nx, 1:ny) = stream(1:nx, 1:ny) + before * direction(1:nx, 1:ny)
      rest = rest - before * image
      before = size
      size = product_of(rest, rest)
      direction(1:nx, 1:ny) = rest + size / before * direction(1:nx, 1:ny)
    end do
    call exchange(stream)
  end subroutine

  ! The change of the vorticity in time: carried by the flow and the wind, spread by viscosity.
  function slope(w, stream) result(change)
    real(real8), intent(inout) :: w(0:nx + 1, 0:ny + 1), stream(0:nx + 1, 0:ny + 1)
    real(real8) :: change(nx, ny)
    call solve(w, stream)
    change = viscosity * laplacian(w)
    change = change - (wind_x + (stream(1:nx, 2:ny + 1) - stream(1:nx, 0:ny - 1)) / (2 * h)) &
             * (w(2:nx + 1, 1:ny) - w(0:nx - 1, 1:ny)) / (2 * h)
    change = change - (wind_y - (stream(2:nx + 1, 1:ny) - stream(0:nx - 1, 1:ny)) / (2 * h)) &
             * (w(1:nx, 2:ny + 1) - w(1:nx, 0:ny - 1)) / (2 * h)
  end function
end program
