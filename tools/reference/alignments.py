"""Connectionist temporal classification, by every path there is; and rows of a table that are too long."""

import itertools

import numpy as np

from elements import Array
from moments import loosely
from pointwise import draw

BLANK = 0


def collapsed(path):
    kept = [each for at, each in enumerate(path) if at == 0 or each != path[at - 1]]
    return [each for each in kept if each != BLANK]


def likelihood(probs, target):
    """That of the target, and what each step and class has of it."""
    steps, classes = probs.shape
    shares = np.zeros((steps, classes))
    for path in itertools.product(range(classes), repeat=steps):
        if collapsed(path) == list(target):
            weight = np.prod([probs[t, c] for t, c in enumerate(path)])
            for t, c in enumerate(path):
                shares[t, c] += weight
    return (shares[0].sum() if steps else float(len(target) == 0)), shares


def beginnings(probs, target, room, width):
    """[room, width]: of states (classes with blanks between), the likelihood of being there after each step."""
    states = [BLANK]
    for each in target:
        states += [each, BLANK]
    alpha = np.zeros((room, width))
    for time, row in enumerate(probs):
        for s, state in enumerate(states):
            before = float(s < 2) if time == 0 else sum(
                alpha[time - 1, q] for q in range(max(0, s - 2), s + 1)
                if s - q < 2 or (state != BLANK and state != states[q]))
            alpha[time, s] = before * row[state]
    return alpha


def ctc(table):
    for dtype in ("float32", "float64"):
        raw = draw("ctc", dtype, (5, 3, 3)).values.astype(np.float64)
        said = Array(dtype, raw - np.log(np.exp(raw).sum(-1, keepdims=True)))
        probs = np.exp(said.values.astype(np.float64))
        # The last cannot be: three times the same class wants five steps, and it has four.
        sequences, inputs = [[1, 2], [], [2, 2, 2]], [5, 3, 4]
        lengths = [len(each) for each in sequences]
        rows = Array("int64", [each + [1] * (3 - len(each)) for each in sequences])
        behind = Array("int64", [each for one in sequences for each in one])
        loss, grad, by = np.zeros(3), np.zeros((5, 3, 3)), draw("ctc grad", dtype, (3,))
        alpha = np.zeros((3, 5, 7))
        for n, target in enumerate(sequences):
            total, shares = likelihood(probs[:inputs[n], n], target)
            alpha[n] = beginnings(probs[:inputs[n], n], target, 5, 7)
            with np.errstate(divide="ignore"):
                loss[n] = -np.log(total)
            if total:
                grad[:inputs[n], n] = (probs[:inputs[n], n] - shares / total) * by.values[n]
        with np.errstate(divide="ignore"):
            log_alpha = np.log(alpha)
        near = [np.where(np.isfinite(each), 1e-5 if dtype == "float32" else 1e-13, 0) for each in (loss, log_alpha)]
        results = [Array(dtype, loss), Array(dtype, log_alpha)]
        whole = {"log_probs": said, "targets": rows}
        for targets in (rows, behind):
            table.add("_ctc_loss", results, near, log_probs=said, targets=targets, input_lengths=inputs,
                      target_lengths=lengths)
        as_tensors = {"input_lengths": Array("int64", inputs), "target_lengths": Array("int32", lengths)}
        table.add("_ctc_loss.Tensor", results, near, **whole, **as_tensors)
        for name, of in (("_ctc_loss_backward", {"input_lengths": inputs, "target_lengths": lengths}),
                         ("_ctc_loss_backward.Tensor", as_tensors)):
            table.add(name, Array(dtype, grad), loosely(grad, dtype, 64), grad=by, **whole, **of,
                      neg_log_likelihood=results[0], log_alpha=results[1], blank=0, zero_infinity=True)
        finite = np.where(np.isinf(loss), 0, loss)
        for reduction, value in ((0, finite), (1, np.mean(finite / np.maximum(lengths, 1))), (2, finite.sum())):
            for name, of in (("ctc_loss.IntList", {"input_lengths": inputs, "target_lengths": lengths}),
                             ("ctc_loss.Tensor", as_tensors)):
                table.add(name, Array(dtype, value), loosely(np.asarray(value), dtype, 64), **whole, **of,
                          reduction=reduction, zero_infinity=True)


def lengths(table):
    for dtype in ("float32", "float64"):
        for norm in (1.0, 2.0):
            x, named = draw("too long", dtype, (5, 3)), Array("int64", [[4, 1], [1, 0]])
            wide = x.values.astype(np.float64)
            made = wide.copy()
            for row in set(named.values.reshape(-1)):
                length = (np.abs(wide[row]) ** norm).sum() ** (1 / norm)
                if length > 2.5:
                    made[row] *= 2.5 / (length + 1e-7)
            table.add("embedding_renorm", Array(dtype, made), loosely(made, dtype, 16), self=x, indices=named,
                      max_norm=2.5, norm_type=norm)


def noise(table):
    x, noise_of = draw("noisy", "float32", (3, 4)), draw("noise", "float32", (3, 4), 0.125, 0.375)
    made = np.where(x.values > 0, x.values, x.values * np.float32(0.25))
    table.add("rrelu_with_noise", Array("float32", made), "ulp 1", self=x, noise=noise_of, lower=0.125, upper=0.375)
    grad = draw("noisy grad", "float32", (3, 4))
    how = {"grad_output": grad, "self": x, "noise": noise_of, "lower": 0.125, "upper": 0.375, "self_is_result": False}
    table.add("rrelu_with_noise_backward", Array("float32", grad.values * noise_of.values), "ulp 1", **how,
              training=True)
    slope = np.where(x.values > 0, np.float32(1), np.float32(0.25))
    table.add("rrelu_with_noise_backward", Array("float32", grad.values * slope), "ulp 1", **how, training=False)


def write(table):
    ctc(table)
    lengths(table)
    noise(table)
