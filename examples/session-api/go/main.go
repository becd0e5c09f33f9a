// A service that uses the session API, in Go. docs/session-api.md explains each function.
//
//	export SESSION_SVC=127.0.0.1:50051   # with TLS: SESSION_CA, SESSION_CERT and SESSION_KEY, PEM files
//
//	go run . look-up HANDLE
//	SESSION_ID=… go run . call-api URL SCOPE
//	SESSION_ID=… go run . remember KEY VALUE
//	go run . end-all ISSUER SUBJECT
//	go run . watch
//
// A session ID is a secret: it comes from the environment, because others can read a program's arguments.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"net/http"
	"os"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	pb "example.test/session/v1"
)

const (
	deadline      = 5 * time.Second  // for every call
	tokenDeadline = 20 * time.Second // the session service may wait for the provider
)

// Calls use all addresses of the name in turn. gRPC retries reads and endings if no replica was reached. It must not
// send changes twice.
const config = `{
  "loadBalancingConfig": [{"round_robin": {}}],
  "methodConfig": [{
    "name": [
      {"service": "session.v1.SessionService", "method": "GetSession"},
      {"service": "session.v1.SessionService", "method": "BatchGetSessions"},
      {"service": "session.v1.SessionService", "method": "ListSessions"},
      {"service": "session.v1.SessionService", "method": "RollSession"},
      {"service": "session.v1.SessionService", "method": "GetAccessToken"},
      {"service": "session.v1.SessionService", "method": "EndSession"},
      {"service": "session.v1.SessionService", "method": "EndSessions"}
    ],
    "retryPolicy": {
      "maxAttempts": 3, "initialBackoff": "0.02s", "maxBackoff": "0.5s", "backoffMultiplier": 2,
      "retryableStatusCodes": ["UNAVAILABLE"]
    }
  }]
}`

// connect makes one connection for the whole program. The scheme dns:/// resolves the name again when it ends.
func connect() (*grpc.ClientConn, error) {
	address := os.Getenv("SESSION_SVC")
	if address == "" {
		address = "127.0.0.1:50051"
	}
	security := grpc.WithInsecure()
	if file := os.Getenv("SESSION_CA"); file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		trusted := x509.NewCertPool()
		trusted.AppendCertsFromPEM(pem)
		settings := &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
		if file := os.Getenv("SESSION_CERT"); file != "" {
			pair, err := tls.LoadX509KeyPair(file, os.Getenv("SESSION_KEY"))
			if err != nil {
				return nil, err
			}
			settings.Certificates = []tls.Certificate{pair}
		}
		security = grpc.WithTransportCredentials(credentials.NewTLS(settings))
	}
	return grpc.Dial("dns:///"+address, security, grpc.WithDefaultServiceConfig(config))
}

// errorInfo gives the ErrorInfo of a failure; an empty one if the failure does not come from the service.
func errorInfo(err error) *errdetails.ErrorInfo {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.Domain == "session.v1" {
			return info
		}
	}
	return &errdetails.ErrorInfo{}
}

// needsSignIn is true if only a new sign-in helps.
func needsSignIn(reason string) bool {
	switch reason {
	case "ERR_MISSING_SESSION", "ERR_MISSING_ACCESS_TOKEN", "ERR_MISSING_REFRESH_TOKEN",
		"ERR_EXPIRED_ACCESS_TOKEN", "ERR_FAILED_REFRESH_GRANT":
		return true
	}
	return false
}

// lookUp prints the user of a session.
func lookUp(sessions pb.SessionServiceClient, handle string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	answer, err := sessions.GetSession(ctx, &pb.GetSessionRequest{By: &pb.GetSessionRequest_Handle{Handle: handle}})
	if reason := errorInfo(err).Reason; needsSignIn(reason) {
		fmt.Println("no user is signed in:", reason)
		return nil
	}
	if err != nil {
		return err // such as codes.Unavailable: the state is unknown, so this is not "signed out"
	}
	session := answer.GetSession()
	if session.GetState() == pb.Session_STATE_NEEDS_SIGN_IN {
		fmt.Println(session.GetSubject(), "has to sign in again before an API can be called")
	} else {
		fmt.Println(session.GetSubject(), "is signed in")
	}
	return nil
}

// callAPI calls an API for the user. It asks for the token each time: the session service refreshes an expired one.
func callAPI(sessions pb.SessionServiceClient, url, scope string) error {
	ctx, cancel := context.WithTimeout(context.Background(), tokenDeadline)
	defer cancel()
	request := &pb.GetAccessTokenRequest{SessionId: os.Getenv("SESSION_ID"), Scopes: []string{scope}}
	token, err := sessions.GetAccessToken(ctx, request)
	if info := errorInfo(err); needsSignIn(info.Reason) {
		fmt.Println("sign in again:", info.Reason)
		return nil
	} else if info.Reason == "ERR_INSUFFICIENT_SCOPE" {
		fmt.Println("not granted:", info.Metadata["scopes"])
		return nil
	}
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	call.Header.Set("Authorization", "Bearer "+token.GetAccessToken())
	answer, err := http.DefaultClient.Do(call)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<20))
	fmt.Println(string(body))
	return err
}

// remember stores a value with the session. Another caller may change the session between read and write: then the
// version is stale, and this makes the change again on the current session.
func remember(sessions pb.SessionServiceClient, key, value string) error {
	ctx, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	id := os.Getenv("SESSION_ID")
	for {
		answer, err := sessions.GetSession(ctx, &pb.GetSessionRequest{By: &pb.GetSessionRequest_SessionId{SessionId: id}})
		if err != nil {
			return err
		}
		var attributes map[string]json.RawMessage // raw, so that the values of other callers stay exactly as they are
		if err := json.Unmarshal([]byte(answer.GetSession().GetAttributes()), &attributes); err != nil {
			return err
		}
		if attributes[key], err = json.Marshal(value); err != nil {
			return err
		}
		changed, err := json.Marshal(attributes)
		if err != nil {
			return err
		}
		version := answer.GetSession().GetVersion()
		_, err = sessions.UpdateSession(ctx, &pb.UpdateSessionRequest{SessionId: id, Attributes: string(changed), Version: version})
		if err == nil {
			fmt.Println("remembered")
			return nil
		}
		if errorInfo(err).Reason != "ERR_STALE_VERSION" {
			return err
		}
		fmt.Println("another caller changed the session: trying again")
	}
}

// endAll lists a user's sessions page by page, and ends them. (EndSessions ends them all in one call.)
func endAll(sessions pb.SessionServiceClient, issuer, subject string) error {
	request := &pb.ListSessionsRequest{Issuer: issuer, Subject: subject, PageSize: 100}
	for {
		ctx, cancel := context.WithTimeout(context.Background(), deadline)
		defer cancel()
		page, err := sessions.ListSessions(ctx, request)
		if err != nil {
			return err
		}
		for _, session := range page.GetSessions() {
			by := &pb.EndSessionRequest_Handle{Handle: session.GetHandle()}
			answer, err := sessions.EndSession(ctx, &pb.EndSessionRequest{By: by, Cause: pb.Cause_CAUSE_OPERATOR})
			if err != nil {
				return err
			}
			// It is no failure if another caller has ended the session meanwhile.
			fmt.Println(session.GetHandle(), map[bool]string{true: "ended", false: "was gone"}[answer.GetEnded()])
		}
		if request.PageToken = page.GetNextPageToken(); request.PageToken == "" {
			return nil
		}
	}
}

const (
	beats    = 3 // a stream is dead after this many of its heartbeat intervals without an event
	pauseMin = 50 * time.Millisecond
	pauseMax = 5 * time.Second
)

type watcher struct {
	sessions    pb.SessionServiceClient
	resumeToken string
	heard       bool // ever
}

// watch prints every ending while the program runs. It opens a stream again that ends, and continues after the last
// event. If that is not possible, the service sends MISSED.
func watch(sessions pb.SessionServiceClient) error {
	w := watcher{sessions: sessions}
	pause := pauseMin
	for {
		live, err := w.listen()
		if status.Code(err) == codes.InvalidArgument {
			return err // the same request fails the same way
		}
		if live {
			fmt.Println("lost: do not trust cached sessions")
			pause = pauseMin
		}
		time.Sleep(pause/2 + time.Duration(rand.Int63n(int64(pause/2))))
		if pause *= 2; pause > pauseMax {
			pause = pauseMax
		}
	}
}

// listen reads one stream until it ends; live says whether the stream has caught up.
func (w *watcher) listen() (live bool, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	tooSilent := time.AfterFunc(deadline, cancel)
	defer tooSilent.Stop()
	stream, err := w.sessions.WatchSessions(ctx, &pb.WatchSessionsRequest{ResumeToken: w.resumeToken})
	if err != nil {
		return false, err
	}
	silence := deadline
	for {
		event, err := stream.Recv()
		if err != nil {
			return live, err
		}
		w.resumeToken = event.GetResumeToken()
		switch event.GetKind() {
		case pb.SessionEvent_KIND_ENDED:
			fmt.Println("ended", event.GetHandle(), event.GetCause())
		case pb.SessionEvent_KIND_MISSED:
			fmt.Println("missed: read cached sessions again")
		case pb.SessionEvent_KIND_HEARTBEAT:
			// The service has sent all earlier events.
			if !live && w.heard {
				fmt.Println("live again")
			} else if !live {
				fmt.Println("live: read the sessions you need")
			}
			live, w.heard = true, true
			interval := event.GetHeartbeatInterval()
			silence = beats * (time.Duration(interval.GetSeconds())*time.Second + time.Duration(interval.GetNanos()))
		}
		tooSilent.Reset(silence)
	}
}

func run(arguments []string) error {
	connection, err := connect()
	if err != nil {
		return err
	}
	defer connection.Close()
	sessions := pb.NewSessionServiceClient(connection)
	task, rest := "", make([]string, 2)
	if len(arguments) > 0 {
		task = arguments[0]
		copy(rest, arguments[1:])
	}
	switch task {
	case "look-up":
		return lookUp(sessions, rest[0])
	case "call-api":
		return callAPI(sessions, rest[0], rest[1])
	case "remember":
		return remember(sessions, rest[0], rest[1])
	case "end-all":
		return endAll(sessions, rest[0], rest[1])
	case "watch":
		return watch(sessions)
	}
	return errors.New("look-up HANDLE | call-api URL SCOPE | remember KEY VALUE | end-all ISSUER SUBJECT | watch")
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
