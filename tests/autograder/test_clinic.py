"""The clinic: the same text gives the same patient, and every patient has the faults that its plan says."""

from __future__ import annotations

import copy
from collections import Counter

import pytest
import torch

from autograder.clinic import FAULTS, FAULTS_OF_ONE_PATIENT, admit, build, faults_of, make_plan, own_plan
from autograder.exercises.ch09_mastery.sick_model import reference_diagnose

STUDENTS = [f"student {number}" for number in range(60)]


def test_the_same_text_gives_the_same_patient_and_leaves_the_random_state_alone() -> None:
    state = torch.get_rng_state()
    one, other = admit("ada"), admit(" ada ")
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(a, b) for a, b in zip(one.model.parameters(), other.model.parameters(), strict=True))
    assert torch.equal(one.sample, other.sample)


@pytest.mark.parametrize("text", STUDENTS[:20])
def test_the_faults_found_are_the_faults_planned(text: str) -> None:
    found = {fault: sorted(paths) for fault, paths in reference_diagnose(admit(text)).items() if paths}
    assert found == faults_of(own_plan(text))
    assert len(found) == FAULTS_OF_ONE_PATIENT


def test_students_have_different_patients_and_every_fault_occurs() -> None:
    plans = [own_plan(text) for text in STUDENTS]
    assert len({str(faults_of(plan)) for plan in plans}) > 50
    counts = Counter(fault for plan in plans for fault in plan.places)
    assert set(counts) == set(FAULTS) and min(counts.values()) >= 10


@pytest.mark.parametrize("variant", [0, 1])
def test_a_patient_runs_unless_its_fault_stops_it(variant: int) -> None:
    for seed in range(20):
        for fault in FAULTS:
            patient = build(make_plan(seed, {fault: variant}, "train"))
            if fault == "inplace_under_hook":
                with pytest.raises(RuntimeError, match="modified inplace"):
                    patient.model(patient.sample)
            else:
                patient.model(patient.sample).sum().backward()
                copy.deepcopy(patient.model)


def test_only_a_text_is_admitted() -> None:
    with pytest.raises(TypeError, match="such as your student id"):
        admit(7)
