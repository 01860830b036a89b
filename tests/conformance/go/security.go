package main

import (
	"crypto/sha256"
	"crypto/sha512"
	"crypto/tls"
	"crypto/x509"
	"hash"
	"log"
	"os"
	"strings"

	"github.com/IBM/sarama"
	"github.com/segmentio/kafka-go"
	segmentio "github.com/segmentio/kafka-go/sasl"
	segmentioplain "github.com/segmentio/kafka-go/sasl/plain"
	segmentioscram "github.com/segmentio/kafka-go/sasl/scram"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	franzscram "github.com/twmb/franz-go/pkg/sasl/scram"
	"github.com/xdg-go/scram"
)

// How a client reaches a broker that asks who it is, from the environment; all empty without.
var (
	mechanism = os.Getenv("CLIENT_MECHANISM")
	user      = os.Getenv("CLIENT_USER")
	password  = os.Getenv("CLIENT_PASSWORD")
	token     = os.Getenv("CLIENT_TOKEN")
)

func encryption() *tls.Config {
	if !strings.HasSuffix(os.Getenv("CLIENT_PROTOCOL"), "SSL") {
		return nil
	}
	pem, err := os.ReadFile(os.Getenv("CLIENT_CA"))
	must(err)
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		log.Fatal("no certificate in CLIENT_CA")
	}
	return &tls.Config{RootCAs: pool}
}

func franzOptions(bootstrap string, more ...kgo.Opt) []kgo.Opt {
	options := append(more, kgo.SeedBrokers(bootstrap))
	if found := encryption(); found != nil {
		options = append(options, kgo.DialTLSConfig(found))
	}
	switch mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(franzscram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(franzscram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: token}.AsMechanism()))
	}
	return options
}

func saramaSecurity(config *sarama.Config) {
	if found := encryption(); found != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, found
	}
	if mechanism == "" {
		return
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = user, password
	switch mechanism {
	case "SCRAM-SHA-256":
		config.Net.SASL.SCRAMClientGeneratorFunc = conversation(sha256.New)
	case "SCRAM-SHA-512":
		config.Net.SASL.SCRAMClientGeneratorFunc = conversation(sha512.New)
	case "OAUTHBEARER":
		config.Net.SASL.TokenProvider = fixedToken{}
	}
}

type fixedToken struct{}

func (fixedToken) Token() (*sarama.AccessToken, error) {
	return &sarama.AccessToken{Token: token}, nil
}

// scramClient is what sarama wants of a library for SCRAM.
type scramClient struct {
	*scram.ClientConversation
	hash scram.HashGeneratorFcn
}

func conversation(hash func() hash.Hash) func() sarama.SCRAMClient {
	return func() sarama.SCRAMClient { return &scramClient{hash: hash} }
}

func (client *scramClient) Begin(user, password, authorization string) error {
	made, err := client.hash.NewClient(user, password, authorization)
	if err == nil {
		client.ClientConversation = made.NewConversation()
	}
	return err
}

func segmentioMechanism() segmentio.Mechanism {
	algorithms := map[string]segmentioscram.Algorithm{
		"SCRAM-SHA-256": segmentioscram.SHA256, "SCRAM-SHA-512": segmentioscram.SHA512,
	}
	switch mechanism {
	case "":
		return nil
	case "PLAIN":
		return segmentioplain.Mechanism{Username: user, Password: password}
	}
	made, err := segmentioscram.Mechanism(algorithms[mechanism], user, password)
	must(err)
	return made
}

func segmentioTransport() *kafka.Transport {
	return &kafka.Transport{TLS: encryption(), SASL: segmentioMechanism()}
}

func segmentioDialer() *kafka.Dialer {
	return &kafka.Dialer{Timeout: patience, DualStack: true, TLS: encryption(), SASLMechanism: segmentioMechanism()}
}
