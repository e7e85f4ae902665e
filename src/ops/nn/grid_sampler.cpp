// Images read at places that a grid of coordinates gives, -1 and 1 being their borders.
#include <tenon/ops/table.h>
#include <tenon/sym/size_rules.h>

namespace tenon::ops {
namespace {

enum class Filter : int64_t { Bilinear, Nearest, Bicubic };
enum class Outside : int64_t { Zeros, Border, Reflection };

// How coordinates become places among elements.
struct Places {
  Filter filter;
  Outside outside;
  bool align_corners;

  // Coordinates of elements: the middles of the first and last at -1 and 1, or their outer edges.
  Tensor to_elements(const Tensor& coordinate, const SymInt& size) const {
    if (align_corners) return (coordinate + 1) * 0.5 * Scalar(size - 1);
    return ((coordinate + 1) * Scalar(size) - 1) * 0.5;
  }
  // Folded at both ends, those being the middles of the outer elements or their edges.
  Tensor reflected(const Tensor& place, const SymInt& size) const {
    double low = align_corners ? 0 : -0.5;
    SymInt elements = align_corners ? size - 1 : size;
    Tensor span = full(SymInts{}, Scalar(max(elements, SymInt(1))), TensorOptions(place.dtype(), place.device()));
    Tensor far = abs(place - low), turns = floor(far / span), rest = far - turns * span;
    Tensor odd = turns - floor(turns * 0.5) * 2;
    Tensor folded = where(odd == 0, rest, span - rest) + low;
    return where(full(SymInts{}, Scalar(elements), TensorOptions(place.dtype(), place.device())) == 0,
                 zeros_like(folded), folded);
  }
  Tensor bounded(const Tensor& place, const SymInt& size) const {
    if (outside == Outside::Zeros) return place;
    Tensor inside = outside == Outside::Reflection ? reflected(place, size) : place;
    return clamp(inside, Scalar(0), Scalar(size - 1));
  }
  static Tensor within(const Tensor& place, const SymInt& size) {
    return logical_and(place >= 0, place <= Scalar(size - 1));
  }
  static Tensor whole(const Tensor& place, const SymInt& size) {
    return clamp(clamp(place, Scalar(0), Scalar(size - 1)).to(kInt64), Scalar(0), Scalar(size - 1));
  }
};

struct Sampler : Places {
  Tensor planes;  // [N, C, H * W]
  SymInt height, width;

  // The elements at whole coordinates [N, h, w], as [N, C, h, w]; nothing outside.
  Tensor at(const Tensor& row, const Tensor& column) const {
    Tensor inside = logical_and(within(row, height), within(column, width));
    Tensor position = whole(row, height) * Scalar(width) + whole(column, width);
    SymInts sizes{planes.size(0), planes.size(1), row.size(1), row.size(2)};
    Tensor flat =
        expand(reshape(position, {sizes[0], 1, sizes[2] * sizes[3]}), {sizes[0], sizes[1], sizes[2] * sizes[3]});
    Tensor picked = reshape(gather(planes, 2, flat), sizes);
    return where(unsqueeze(inside, 1), picked, zeros(SymInts{}, TensorOptions(picked.dtype(), picked.device())));
  }
  Tensor bilinear(const Tensor& row, const Tensor& column) const {
    Tensor top = floor(row), left = floor(column), down = row - top, right = column - left;
    auto weighted = [&](const Tensor& r, const Tensor& c, const Tensor& weight) {
      return at(r, c) * unsqueeze(weight, 1);
    };
    return weighted(top, left, (1 - down) * (1 - right)) + weighted(top, left + 1, (1 - down) * right) +
           weighted(top + 1, left, down * (1 - right)) + weighted(top + 1, left + 1, down * right);
  }
  // Keys' convolution with a = -0.75; each of the sixteen is bounded by itself.
  Tensor bicubic(const Tensor& row, const Tensor& column) const {
    Tensor top = floor(row), left = floor(column), down = row - top, right = column - left;
    Tensor total;
    for (int64_t i = -1; i <= 2; ++i) {
      Tensor line;
      for (int64_t j = -1; j <= 2; ++j) {
        Tensor element = at(bounded(top + i, height), bounded(left + j, width));
        Tensor term = element * unsqueeze(weight(right, j), 1);
        line = line.defined() ? line + term : term;
      }
      Tensor term = line * unsqueeze(weight(down, i), 1);
      total = total.defined() ? total + term : term;
    }
    return total;
  }
  static Tensor weight(const Tensor& part, int64_t step) {
    constexpr double a = -0.75;
    Tensor distance = step < 1 ? part - step : static_cast<double>(step) - part;
    if (step == 0 || step == 1) return ((distance * (a + 2) - (a + 3)) * distance) * distance + 1;
    return ((distance * a - 5 * a) * distance + 8 * a) * distance - 4 * a;
  }

  Tensor sample(const Tensor& row, const Tensor& column) const {
    if (filter == Filter::Bicubic) return bicubic(row, column);
    Tensor y = bounded(row, height), x = bounded(column, width);
    if (filter == Filter::Nearest) return at(round(y), round(x));
    return bilinear(y, x);
  }
};

Tensor grid_sampled(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                    bool align_corners) {
  TENON_CHECK(input.defined() && grid.defined() && input.dim() == 4 && grid.dim() == 4,
              "[grid_sampler_2d] expected an input [N, C, H, W] and a grid [N, h, w, 2]");
  TENON_CHECK_IMPLEMENTED(is_floating(input.dtype()), "[grid_sampler_2d] expected a floating point tensor, got {}",
                          input.description());
  TENON_CHECK(grid.dtype() == input.dtype(), "[grid_sampler_2d] expected a grid of {}, got {}", name(input.dtype()),
              grid.description());
  TENON_CHECK(same_size(grid.size(0), input.size(0)) && same_size(grid.size(3), 2),
              "[grid_sampler_2d] expected a grid [{}, h, w, 2], got {}", input.size(0).str(), grid.description());
  TENON_CHECK(expect(input.size(2) > 0) && expect(input.size(3) > 0), "[grid_sampler_2d] nothing can be read from {}",
              input.description());
  TENON_CHECK(interpolation_mode >= 0 && interpolation_mode <= 2 && padding_mode >= 0 && padding_mode <= 2,
              "[grid_sampler_2d] expected an interpolation_mode and a padding_mode of 0, 1 or 2, got {} and {}",
              interpolation_mode, padding_mode);
  // Halves are computed in float32 and rounded once.
  Dtype wide = compute_dtype(input.dtype());
  SymInt height = input.size(2), width = input.size(3);
  Tensor planes = reshape(input.to(wide), {input.size(0), input.size(1), height * width}), places = grid.to(wide);
  Sampler s{{static_cast<Filter>(interpolation_mode), static_cast<Outside>(padding_mode), align_corners},
            planes,
            height,
            width};
  Tensor row = s.to_elements(select(places, 3, 1), height), column = s.to_elements(select(places, 3, 0), width);
  return s.sample(row, column).to(input.dtype());
}

// Volumes, of which eight elements stand around a place.
struct VolumeSampler : Places {
  Tensor volumes;  // [N, C, D * H * W]
  SymInts sizes;   // D, H, W

  // The elements at whole coordinates [N, d, h, w], as [N, C, d, h, w]; nothing outside.
  Tensor at(const std::vector<Tensor>& place) const {
    Tensor inside, position;
    for (size_t dim = 0; dim < 3; ++dim) {
      Tensor here = within(place[dim], sizes[dim]), whole_place = whole(place[dim], sizes[dim]);
      inside = dim == 0 ? here : logical_and(inside, here);
      position = dim == 0 ? whole_place : position * Scalar(sizes[dim]) + whole_place;
    }
    SymInts result{volumes.size(0), volumes.size(1)}, flat{volumes.size(0), 1, position.numel()};
    SymInt count = 1;
    for (int64_t dim = 1; dim < 4; ++dim) {
      result.push_back(position.size(dim));
      count *= position.size(dim);
    }
    flat[2] = count;
    Tensor picked = gather(volumes, 2, expand(reshape(position, flat), {flat[0], result[1], count}));
    return where(unsqueeze(inside, 1), reshape(picked, result),
                 zeros(SymInts{}, TensorOptions(picked.dtype(), picked.device())));
  }
  Tensor sample(const std::vector<Tensor>& coordinates) const {
    std::vector<Tensor> places, first, part;
    for (size_t dim = 0; dim < 3; ++dim) {
      places.push_back(bounded(coordinates[dim], sizes[dim]));
      first.push_back(filter == Filter::Nearest ? round(places[dim]) : floor(places[dim]));
      part.push_back(places[dim] - first[dim]);
    }
    if (filter == Filter::Nearest) return at(first);
    Tensor total;
    for (int corner = 0; corner < 8; ++corner) {
      std::vector<Tensor> place;
      Tensor weight;
      for (size_t dim = 0; dim < 3; ++dim) {
        const bool behind = (corner >> (2 - dim) & 1) != 0;
        place.push_back(behind ? first[dim] + 1 : first[dim]);
        Tensor share = behind ? part[dim] : 1 - part[dim];
        weight = dim == 0 ? share : weight * share;
      }
      Tensor term = at(place) * unsqueeze(weight, 1);
      total = corner == 0 ? term : total + term;
    }
    return total;
  }
};

Tensor volumes_sampled(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                       bool align_corners) {
  TENON_CHECK(input.defined() && grid.defined() && input.dim() == 5 && grid.dim() == 5,
              "[grid_sampler_3d] expected an input [N, C, D, H, W] and a grid [N, d, h, w, 3]");
  TENON_CHECK_IMPLEMENTED(is_floating(input.dtype()), "[grid_sampler_3d] expected a floating point tensor, got {}",
                          input.description());
  TENON_CHECK(grid.dtype() == input.dtype(), "[grid_sampler_3d] expected a grid of {}, got {}", name(input.dtype()),
              grid.description());
  TENON_CHECK(same_size(grid.size(0), input.size(0)) && same_size(grid.size(4), 3),
              "[grid_sampler_3d] expected a grid [{}, d, h, w, 3], got {}", input.size(0).str(), grid.description());
  for (int64_t dim = 2; dim < 5; ++dim)
    TENON_CHECK(expect(input.size(dim) > 0), "[grid_sampler_3d] nothing can be read from {}", input.description());
  TENON_CHECK(
      interpolation_mode >= 0 && interpolation_mode <= 1 && padding_mode >= 0 && padding_mode <= 2,
      "[grid_sampler_3d] expected an interpolation_mode of 0 or 1 and a padding_mode of 0, 1 or 2, got {} and {}",
      interpolation_mode, padding_mode);
  const Dtype wide = compute_dtype(input.dtype());
  VolumeSampler s{
      {static_cast<Filter>(interpolation_mode), static_cast<Outside>(padding_mode), align_corners},
      reshape(input.to(wide), {input.size(0), input.size(1), input.size(2) * input.size(3) * input.size(4)}),
      SymInts{input.size(2), input.size(3), input.size(4)}};
  Tensor coordinates = grid.to(wide);
  std::vector<Tensor> places;
  for (size_t dim = 0; dim < 3; ++dim)
    places.push_back(s.to_elements(select(coordinates, 4, SymInt(2 - static_cast<int64_t>(dim))), s.sizes[dim]));
  return s.sample(places).to(input.dtype());
}

}  // namespace

OPS(grid_sampling) {
  // Example: grid_sampler_3d(ones({1, 2, 4, 4, 4}), zeros({1, 3, 3, 3, 3}), 0, 0, false);
  op("grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
     "Tensor")
      .decompose(volumes_sampled);
  // Example: grid_sampler(ones({1, 2, 4, 4}), zeros({1, 3, 3, 2}), 0, 0, false);
  op("grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor")
      .decompose([](const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                    bool align_corners) {
        const bool of_volumes = input.defined() && input.dim() == 5;
        return (of_volumes ? volumes_sampled : grid_sampled)(input, grid, interpolation_mode, padding_mode,
                                                             align_corners);
      });
  // Example: grid_sampler_2d(ones({1, 2, 4, 4}), zeros({1, 3, 3, 2}), 0, 0, false);
  op("grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> "
     "Tensor")
      .decompose(grid_sampled);
}

}  // namespace tenon::ops
