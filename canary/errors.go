package canary

import "errors"

// A Picker refuses no request; these are answers to those who change it.
var (
	// ErrUnknownVersion: the Picker has no version of that name.
	ErrUnknownVersion = errors.New("canary: unknown version")
	// ErrStable: what was asked for cannot be done to the stable version.
	ErrStable = errors.New("canary: is the stable version")
	// ErrRolledBack: the version was rolled back, and Readmit was not called since.
	ErrRolledBack = errors.New("canary: rolled back")
	// ErrOlderPlan: the plan is no newer than the one in force.
	ErrOlderPlan = errors.New("canary: older plan")
)

// Why a Token is not accepted.
var (
	// ErrToken is what every answer matches.
	ErrToken = errors.New("canary: token not accepted")
	// ErrTokenExpired: its time is over, or further away than MaxTokenLife.
	ErrTokenExpired = errors.New("canary: token expired")
	// ErrTokenRollout: it is for another Picker.
	ErrTokenRollout = errors.New("canary: token for another rollout")
	// ErrTokenSubject: it is for another identity.
	ErrTokenSubject = errors.New("canary: token for another identity")
)
